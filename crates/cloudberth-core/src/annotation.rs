//! Annotations, declared in one table.

/// Every annotation that a provider reads or writes.
#[derive(Debug)]
pub struct Table;
