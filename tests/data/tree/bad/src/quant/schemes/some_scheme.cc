const Scheme kSomeScheme = {};
