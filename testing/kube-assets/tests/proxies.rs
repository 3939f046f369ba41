//! `HAProxy` and nginx with stand-ins for `apt-get` and `dpkg-deb`: shell scripts that note how they were called.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod scratch;

use std::fs;
use std::path::Path;

use kube_assets::{DebianSurroundings, Error, proxies_in};
use scratch::Scratch;

/// The packages of the stand-in have the files that their names say.
const UNPACK: &str = "case \"$2\" in
    *haproxy.deb) file=usr/sbin/haproxy;;
    *nginx.deb) file=usr/sbin/nginx;;
    *stream.deb) file=usr/lib/nginx/modules/ngx_stream_module.so;;
    *lua.deb) file=usr/lib/x86_64-linux-gnu/liblua.so;;
esac
mkdir -p \"$3/$(dirname $file)\" && touch \"$3/$file\"";
const APT: &str = "case \"$1\" in
    install) echo 'Inst lua (5.3 Debian:12 [amd64])'; echo 'Inst haproxy (2.6 Debian:12 [amd64])';;
    download) shift; for name in \"$@\"; do touch \"$name.deb\"; done;;
esac";

fn around(scratch: &Scratch, apt_get: &str) -> DebianSurroundings {
    scratch.around(apt_get, UNPACK)
}

fn touch(file: &Path) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, "").unwrap();
}

#[test]
fn what_is_given_or_installed_is_taken_as_it_is() {
    let scratch = Scratch::new("proxies-given");
    let mut around = around(&scratch, "false");
    let (given, root) = (scratch.0.join("given"), scratch.0.join("root"));
    touch(&given.join("haproxy"));
    touch(&given.join("usr/sbin/nginx"));
    around.given = Some(given.clone());
    let said = proxies_in(&around, &root, &mut |_| ()).unwrap_err().to_string();
    assert!(said.contains("CLOUDBERTH_PROXIES=") && said.contains("lacks"), "{said}");
    touch(&given.join("ngx_stream_module.so"));
    let found = proxies_in(&around, &root, &mut |_| ()).unwrap();
    assert_eq!((found.haproxy, found.nginx), (given.join("haproxy"), given.join("usr/sbin/nginx")));

    around.given = None;
    assert!(proxies_in(&around, &root, &mut |_| ()).is_err(), "nothing is installed");
    touch(&scratch.0.join("path/haproxy"));
    touch(&root.join("usr/sbin/nginx"));
    touch(&root.join("usr/lib/nginx/modules/ngx_stream_module.so"));
    let found = proxies_in(&around, &root, &mut |_| ()).unwrap();
    assert_eq!((found.haproxy, found.libraries), (scratch.0.join("path/haproxy"), vec![]));
}

#[test]
fn packages_are_unpacked_once_with_what_they_need() {
    let scratch = Scratch::new("proxies-once");
    let (around, root) = (around(&scratch, &APT.replace("$name", "${name##*-}")), scratch.0.join("root"));
    let found = proxies_in(&around, &root, &mut |_| ()).unwrap();
    assert!(found.haproxy.is_file() && found.nginx.is_file() && found.stream.is_file(), "{found:?}");
    assert_eq!(found.libraries.len(), 1, "{found:?}");
    assert!(found.libraries[0].join("liblua.so").is_file(), "{found:?}");
    assert_eq!(proxies_in(&around, &root, &mut |_| ()).unwrap(), found);
    let calls = scratch.calls();
    assert_eq!(calls.iter().filter(|call| *call == "apt-get download").count(), 1, "{calls:?}");
    assert_eq!(calls.iter().filter(|call| *call == "dpkg-deb -x").count(), 4, "each package once: {calls:?}");
}

#[test]
fn a_computer_that_cannot_have_them_is_told_what_to_do() {
    let scratch = Scratch::new("proxies-none");
    let error = proxies_in(&around(&scratch, "echo 'E: no network' >&2; exit 100"), &scratch.0, &mut |_| ())
        .unwrap_err();
    assert!(matches!(error, Error::NoProxies { .. }), "{error:?}");
    let said = error.to_string();
    assert!(said.contains("E: no network") && said.contains("install haproxy"), "{said}");
    assert!(!scratch.0.join("cache/cloudberth/proxies/bin").exists());
}
