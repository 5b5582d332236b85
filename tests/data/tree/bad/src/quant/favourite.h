// Asks for one scheme by its name.
extern const Scheme kSomeScheme;
