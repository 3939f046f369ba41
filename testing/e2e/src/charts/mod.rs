//! Charts for tests, and a server that has them: as a repository over HTTP, or in a registry behind TLS.

mod archive;
mod registry;
mod server;

pub use archive::Chart;
pub use server::ChartServer;
