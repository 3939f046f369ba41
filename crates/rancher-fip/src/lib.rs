//! The floating-IP cluster manager for Rancher. No code yet: the cases that it must satisfy are in `cases.toml`.
