#include "io/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <memory>
#include <vector>

namespace octavo {

namespace {

class Hash {
 public:
  Hash() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    ok_ = context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1;
  }
  bool ok() const { return ok_; }
  void Add(std::string_view bytes) {
    ok_ = ok_ && EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1;
  }
  // The last call.
  std::string Digits() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    ok_ = ok_ && EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1;
    std::string text;
    for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
  bool ok_;
};

}  // namespace

Result<std::string> Sha256OfFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return NotFound(path.string() + ": cannot open");
  Hash hash;
  std::vector<char> piece(size_t{1} << 20);
  while (hash.ok() && (file.read(piece.data(), std::ssize(piece)) || file.gcount() > 0)) {
    hash.Add({piece.data(), static_cast<size_t>(file.gcount())});
  }
  if (file.bad()) return IoError(path.string() + ": cannot read");
  std::string digits = hash.Digits();
  if (!hash.ok()) return Internal("sha256 of " + path.string() + " failed");
  return digits;
}

std::string Sha256OfText(std::string_view text) {
  Hash hash;
  hash.Add(text);
  std::string digits = hash.Digits();
  OCTAVO_CHECK(hash.ok());
  return digits;
}

}  // namespace octavo
