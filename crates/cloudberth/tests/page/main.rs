//! The page of the sandbox in a real browser: seen, clicked and typed at as people do it.
//!
//! `cargo xtask page` provides the browser and runs these tests; pictures of the page are left in `target/tmp/page`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![cfg(feature = "demo")]

mod chromium;
mod drawn;
mod played;
mod scripted;

use std::sync::Arc;

use cloudberth::{
    page::{Page, Secrets},
    world::Watched,
};
use tokio::{net::TcpListener, runtime::Runtime};

/// The page of a world, on a port of its own.
fn serve(runtime: &Runtime, world: Arc<dyn Watched>) -> Page {
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Page::serve(world, listener, Secrets::of_this_machine().unwrap()).unwrap()
    })
}
