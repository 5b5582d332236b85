#include "io/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <memory>
#include <vector>

namespace octavo {

Result<std::string> Sha256OfFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return NotFound(path.string() + ": cannot open");
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> hash(EVP_MD_CTX_new(),
                                                                     EVP_MD_CTX_free);
  bool ok = hash != nullptr && EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr) == 1;
  std::vector<char> piece(size_t{1} << 20);
  while (ok && (file.read(piece.data(), std::ssize(piece)) || file.gcount() > 0)) {
    ok = EVP_DigestUpdate(hash.get(), piece.data(), static_cast<size_t>(file.gcount())) == 1;
  }
  if (file.bad()) return IoError(path.string() + ": cannot read");
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  ok = ok && EVP_DigestFinal_ex(hash.get(), digest.data(), &size) == 1;
  if (!ok) return Internal("sha256 of " + path.string() + " failed");
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace octavo
