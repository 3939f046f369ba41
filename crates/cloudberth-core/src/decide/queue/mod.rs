//! See the table in [`crate::decide`].
