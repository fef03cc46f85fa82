//! Nothing: the types are in the tests.
