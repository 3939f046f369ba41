//! The provider for Cloudlycke. No code yet: the cases that it must satisfy are in `cases.toml`, and the program does not
//! list it.
