//! What the tests of this crate share.

use kube_assets::{Assets, NEWEST};

/// The real programs; a first call on an instance builds them and says so.
pub(crate) fn assets() -> Assets {
    kube_assets::ensure(NEWEST, &mut |line| eprintln!("{line}")).unwrap_or_else(|error| panic!("{error}"))
}
