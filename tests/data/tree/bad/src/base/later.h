// no sentence

// Later.
