//! Checks that a producer keeps the order of chunks the vocabulary demands. Looks at the order only, never at content.
