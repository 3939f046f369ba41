//! `ensure` with a stand-in for `go`: a shell script that notes how it was called.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use kube_assets::{
    Assets, Error, NEWEST, OLDEST, Surroundings, elector_in, ensure_in, helm_in, informers_in, pods_in,
};

/// A directory of this test's own, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let dir =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kube-assets-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    /// A `go` that says it is `version`, writes a file per build and then runs `extra`.
    fn go(&self, version: &str, extra: &str) -> Surroundings {
        let script = format!(
            r#"#!/bin/sh
[ "$1" = env ] && {{ echo {version}; exit 0; }}
echo "$PWD $*" >> "{dir}/calls"
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
seq 1 250 >&2
echo program > "$out"
{extra}
"#,
            dir = self.0.display()
        );
        let go = self.0.join("go");
        fs::write(&go, script).unwrap();
        fs::set_permissions(&go, fs::Permissions::from_mode(0o755)).unwrap();
        Surroundings { given: None, cache: Some(self.0.join("cache")), go: go.into() }
    }

    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.0.join("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn shelf(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.join("cache/cloudberth/kube")).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn a_given_directory_is_used_as_it_is_and_missing_programs_are_named() {
    let scratch = Scratch::new("given");
    let mut around = scratch.go("go1.26.8", "");
    around.given = Some(scratch.0.clone());
    fs::write(scratch.0.join("etcd"), "").unwrap();
    let said = ensure_in(&around, "any version", &mut |_| ()).unwrap_err().to_string();
    assert!(said.contains("lacks kube-apiserver, kubectl:"), "{said}");

    fs::write(scratch.0.join("kube-apiserver"), "").unwrap();
    fs::write(scratch.0.join("kubectl"), "").unwrap();
    let found = ensure_in(&around, "any version", &mut |_| ()).unwrap();
    assert_eq!(found.dir(), scratch.0);
    assert_eq!(scratch.calls(), Vec::<String>::new());
}

#[test]
fn programs_that_a_given_directory_lacks_are_built_if_it_need_not_have_them() {
    let scratch = Scratch::new("pods");
    let mut around = scratch.go("go1.26.8", "");
    around.given = Some(scratch.0.clone());
    fs::write(scratch.0.join("kwok"), "").unwrap();
    fs::write(scratch.0.join("kube-scheduler"), "of another release than the one that is built").unwrap();
    let found = pods_in(&around, NEWEST, &mut |_| ()).unwrap();
    assert_eq!(found.kwok, scratch.0.join("kwok"));
    let built = [&found.scheduler, &found.controller_manager];
    assert!(built.iter().all(|path| path.is_file() && path.parent() != Some(&scratch.0)), "{found:?}");
    assert_eq!(scratch.calls().len(), 2, "{:?}", scratch.calls());

    around.given = None;
    let all = pods_in(&around, NEWEST, &mut |_| ()).unwrap();
    assert_eq!(scratch.calls().len(), 3, "kwok alone is missing: {:?}", scratch.calls());
    assert!(all.kwok.is_file() && all.scheduler == found.scheduler);
    assert_eq!(pods_in(&around, NEWEST, &mut |line| panic!("{line}")).unwrap(), all);
    assert_ne!(pods_in(&around, OLDEST, &mut |_| ()).unwrap().scheduler, all.scheduler);
}

#[test]
fn helm_is_taken_from_a_given_directory_or_built() {
    let scratch = Scratch::new("helm");
    let mut around = scratch.go("go1.26.8", "");
    around.given = Some(scratch.0.clone());
    let built = helm_in(&around, &mut |_| ()).unwrap();
    assert!(built.is_file() && built.parent() != Some(&scratch.0), "{}", built.display());
    assert_eq!(helm_in(&around, &mut |line| panic!("{line}")).unwrap(), built);
    fs::write(scratch.0.join("helm"), "").unwrap();
    assert_eq!(helm_in(&around, &mut |line| panic!("{line}")).unwrap(), scratch.0.join("helm"));
    assert_eq!(scratch.calls().len(), 1, "{:?}", scratch.calls());
}

#[test]
fn the_first_call_builds_and_the_second_finds() {
    let scratch = Scratch::new("twice");
    let around = scratch.go("go1.26.8", "");
    let mut lines = Vec::new();
    let first = ensure_in(&around, NEWEST, &mut |line| lines.push(line.to_owned())).unwrap();
    let Assets { apiserver, etcd, kubectl } = &first;
    assert!([apiserver, etcd, kubectl].into_iter().all(|path| path.is_file()));
    assert!(lines.contains(&"kube-apiserver: 200 packages compiled".to_owned()), "{lines:?}");
    assert!(lines.contains(&"kubectl: done".to_owned()), "{lines:?}");

    let calls = scratch.calls();
    assert_eq!(calls.len(), 3, "{calls:?}");
    for call in &calls {
        assert!(call.starts_with(scratch.0.to_str().unwrap()), "built outside the cache: {call}");
        assert!(call.contains(" build -v -mod=readonly -trimpath -ldflags -s -w"), "{call}");
    }
    assert_eq!(ensure_in(&around, NEWEST, &mut |line| panic!("{line}")).unwrap(), first);
    assert_eq!(scratch.calls().len(), 3);
    let left = scratch.shelf();
    assert!(
        left.len() == 2 && left[1] == format!("{}.lock", left[0]),
        "only the programs and the lock: {left:?}"
    );
}

#[test]
fn our_own_programs_are_built_from_a_copy_of_their_sources() {
    type Provide = fn(&Surroundings, &mut dyn FnMut(&str)) -> Result<PathBuf, Error>;
    let table: [(&str, Provide); 2] = [("informers", informers_in), ("elector", elector_in)];
    for (name, provide) in table {
        let scratch = Scratch::new(name);
        let mut around = scratch.go("go1.26.8", "cat go.mod main.go > \"$out\"");
        around.given = Some(scratch.0.join("for the others"));
        let program = provide(&around, &mut |_| ()).unwrap();
        assert_eq!(program.file_name().unwrap(), name);
        let text = fs::read_to_string(&program).unwrap();
        assert!(text.contains("k8s.io/client-go v") && text.contains(&format!("// {name} ")), "{text}");
        assert_eq!(provide(&around, &mut |line| panic!("{line}")).unwrap(), program);
        assert_eq!(scratch.calls().len(), 1);
    }
}

#[test]
fn versions_do_not_share_a_place() {
    let scratch = Scratch::new("versions");
    let around = scratch.go("go1.26.8", "");
    let newest = ensure_in(&around, "1.37", &mut |_| ()).unwrap();
    let oldest = ensure_in(&around, "1.34", &mut |_| ()).unwrap();
    assert_ne!(newest.dir(), oldest.dir());
    assert_eq!(ensure_in(&around, OLDEST, &mut |line| panic!("{line}")).unwrap(), oldest);
    assert_eq!(ensure_in(&around, NEWEST, &mut |line| panic!("{line}")).unwrap(), newest);
}

#[test]
fn two_builders_at_once_build_once() {
    let scratch = Scratch::new("pair");
    let around = scratch.go("go1.26.8", "");
    let both = std::thread::scope(|scope| {
        let threads = [(); 4].map(|()| scope.spawn(|| ensure_in(&around, NEWEST, &mut |_| ()).unwrap()));
        threads.map(|thread| thread.join().unwrap())
    });
    assert!(both.iter().all(|assets| assets == &both[0]));
    assert_eq!(scratch.calls().len(), 3);
}

#[test]
fn a_failed_build_says_why_and_leaves_nothing_that_looks_ready() {
    let scratch = Scratch::new("failed");
    let around = scratch.go("go1.26.8", "case $out in *kubectl) echo 'no space left' >&2; exit 1;; esac");
    let said = ensure_in(&around, NEWEST, &mut |_| ()).unwrap_err().to_string();
    assert!(said.starts_with("go build of kubectl failed:") && said.ends_with("no space left"), "{said}");
    assert!(
        scratch
            .shelf()
            .iter()
            .all(|name| Path::new(name).extension().is_some_and(|e| e == "lock" || e == "building"))
    );

    let around = scratch.go("go1.26.8", "");
    assert!(ensure_in(&around, NEWEST, &mut |_| ()).is_ok(), "the next attempt starts afresh");
}

#[test]
fn a_missing_requirement_is_named() {
    let scratch = Scratch::new("missing");
    let good = scratch.go("go1.26.8", "");
    let old = scratch.go("go1.24.1", "");
    let none = Surroundings { go: scratch.0.join("no-such-go").into(), ..good.clone() };
    let homeless = Surroundings { cache: None, ..good.clone() };
    let table = [
        (&old, NEWEST, "Go is too old (go1.24.1): 1.26 or newer is needed"),
        (&none, NEWEST, "Go is missing (No such file or directory (os error 2)): install Go 1.26 or newer"),
        (&homeless, NEWEST, "set HOME or XDG_CACHE_HOME"),
        (&good, "v0.1.0", "Kubernetes v0.1.0 is not pinned under tools/; pinned: v1.37.1, v1.34.10"),
    ];
    for (around, version, want) in table {
        let error: Error = ensure_in(around, version, &mut |_| ()).unwrap_err();
        assert!(error.to_string().contains(want), "{error}\nlacks {want}");
    }
}
