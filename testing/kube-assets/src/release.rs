//! What is built for a Kubernetes version: pinned modules, packages and link flags.

/// The Kubernetes version that tests use unless they ask for another.
pub const NEWEST: &str = "v1.37.1";

/// The newest patch of the oldest minor that cloudberth supports. It is built only on request.
pub const OLDEST: &str = "v1.34.10";

/// One Go module of ours and the programs built from it.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) name: &'static str,
    pub(crate) go_mod: &'static str,
    pub(crate) go_sum: &'static str,
    /// Sources of our own, by file name; none where only other people's programs are built.
    pub(crate) sources: &'static [(&'static str, &'static str)],
    /// Program name and the package that it is built from.
    pub(crate) programs: &'static [(&'static str, &'static str)],
    /// Variables set at link time. Without them the programs report a version no client understands.
    pub(crate) variables: &'static [(&'static str, &'static str)],
    /// What to do without Go, as the end of a sentence.
    pub(crate) without_go: &'static str,
}

/// What is built together: a version, and the modules that give it.
#[derive(Debug)]
pub(crate) struct Release {
    /// Its name for people.
    pub(crate) title: &'static str,
    pub(crate) version: &'static str,
    pub(crate) modules: &'static [Module],
}

/// The versions that can be built.
pub(crate) const RELEASES: &[Release] = &[
    Release { title: "Kubernetes", version: NEWEST, modules: &[ETCD, KUBERNETES_1_37] },
    Release { title: "Kubernetes", version: OLDEST, modules: &[ETCD, KUBERNETES_1_34] },
];

/// What makes Deployments run on these versions, apart from kubelets.
pub(crate) const CONTROL_LOOPS: &[Release] = &[
    Release { title: CONTROL_LOOPS_TITLE, version: NEWEST, modules: &[CONTROL_LOOPS_1_37] },
    Release { title: CONTROL_LOOPS_TITLE, version: OLDEST, modules: &[CONTROL_LOOPS_1_34] },
];

const CONTROL_LOOPS_TITLE: &str = "the scheduler and the controller manager of Kubernetes";

/// The stand-in for kubelets.
pub(crate) const KUBELETS: Release = Release { title: "kwok", version: "kwok-v0.8.0", modules: &[KWOK] };

/// What installs charts.
pub(crate) const HELM: Release = Release { title: "helm", version: "helm-v3.20.0", modules: &[HELM_MODULE] };

/// Our program on top of client-go's informers.
pub(crate) const INFORMERS: Release =
    Release { title: "the client-go checks", version: "client-go-v0.37.1", modules: &[CLIENT_GO] };

/// Our program on top of client-go's leader election.
pub(crate) const ELECTOR: Release =
    Release { title: "the client-go candidate", version: "elector-v0.37.1", modules: &[LEADER_ELECTION] };

const GIVEN_INSTEAD: &str =
    ", or set KUBEBUILDER_ASSETS to a directory with kube-apiserver, etcd and kubectl";

const CLIENT_GO: Module = Module {
    name: "client-go",
    go_mod: include_str!("../../../tools/client-go/go.mod"),
    go_sum: include_str!("../../../tools/client-go/go.sum"),
    sources: &[
        ("main.go", include_str!("../../../tools/client-go/main.go")),
        ("custom.go", include_str!("../../../tools/client-go/custom.go")),
        ("gate.go", include_str!("../../../tools/client-go/gate.go")),
        ("history.go", include_str!("../../../tools/client-go/history.go")),
        ("objects.go", include_str!("../../../tools/client-go/objects.go")),
        ("events.go", include_str!("../../../tools/client-go/events.go")),
        ("relist.go", include_str!("../../../tools/client-go/relist.go")),
    ],
    programs: &[("informers", ".")],
    variables: &[],
    without_go: "",
};

const LEADER_ELECTION: Module = Module {
    name: "elector",
    go_mod: include_str!("../../../tools/elector/go.mod"),
    go_sum: include_str!("../../../tools/elector/go.sum"),
    sources: &[
        ("main.go", include_str!("../../../tools/elector/main.go")),
        ("candidate.go", include_str!("../../../tools/elector/candidate.go")),
        ("record.go", include_str!("../../../tools/elector/record.go")),
    ],
    programs: &[("elector", ".")],
    variables: &[],
    without_go: "",
};

const ETCD: Module = Module {
    name: "etcd",
    go_mod: include_str!("../../../tools/etcd/go.mod"),
    go_sum: include_str!("../../../tools/etcd/go.sum"),
    sources: &[],
    programs: &[("etcd", "go.etcd.io/etcd/server/v3")],
    variables: &[],
    without_go: GIVEN_INSTEAD,
};

const KUBERNETES_PROGRAMS: &[(&str, &str)] = &[
    ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
];

const CONTROL_LOOPS_PROGRAMS: &[(&str, &str)] = &[
    ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
];

const CONTROL_LOOPS_1_37: Module =
    Module { programs: CONTROL_LOOPS_PROGRAMS, without_go: "", ..KUBERNETES_1_37 };

const CONTROL_LOOPS_1_34: Module =
    Module { programs: CONTROL_LOOPS_PROGRAMS, without_go: "", ..KUBERNETES_1_34 };

const KWOK: Module = Module {
    name: "kwok",
    go_mod: include_str!("../../../tools/kwok/go.mod"),
    go_sum: include_str!("../../../tools/kwok/go.sum"),
    sources: &[],
    programs: &[("kwok", "sigs.k8s.io/kwok/cmd/kwok")],
    variables: &[],
    without_go: "",
};

const HELM_MODULE: Module = Module {
    name: "helm",
    go_mod: include_str!("../../../tools/helm/go.mod"),
    go_sum: include_str!("../../../tools/helm/go.sum"),
    sources: &[],
    programs: &[("helm", "helm.sh/helm/v3/cmd/helm")],
    variables: &[("helm.sh/helm/v3/internal/version.version", "v3.20.0")],
    without_go: "",
};

const KUBERNETES_1_37: Module = Module {
    name: "kubernetes",
    go_mod: include_str!("../../../tools/kubernetes/go.mod"),
    go_sum: include_str!("../../../tools/kubernetes/go.sum"),
    sources: &[],
    programs: KUBERNETES_PROGRAMS,
    variables: &[
        ("k8s.io/component-base/version.gitVersion", NEWEST),
        ("k8s.io/component-base/version.gitMajor", "1"),
        ("k8s.io/component-base/version.gitMinor", "37"),
        ("k8s.io/client-go/pkg/version.gitVersion", NEWEST),
        ("k8s.io/client-go/pkg/version.gitMajor", "1"),
        ("k8s.io/client-go/pkg/version.gitMinor", "37"),
    ],
    without_go: GIVEN_INSTEAD,
};

const KUBERNETES_1_34: Module = Module {
    name: "kubernetes-1.34",
    go_mod: include_str!("../../../tools/kubernetes-1.34/go.mod"),
    go_sum: include_str!("../../../tools/kubernetes-1.34/go.sum"),
    sources: &[],
    programs: KUBERNETES_PROGRAMS,
    variables: &[
        ("k8s.io/component-base/version.gitVersion", OLDEST),
        ("k8s.io/component-base/version.gitMajor", "1"),
        ("k8s.io/component-base/version.gitMinor", "34"),
        ("k8s.io/client-go/pkg/version.gitVersion", OLDEST),
        ("k8s.io/client-go/pkg/version.gitMajor", "1"),
        ("k8s.io/client-go/pkg/version.gitMinor", "34"),
    ],
    without_go: GIVEN_INSTEAD,
};

/// The release in `table` that `1.34`, `v1.34` or `v1.34.10` stands for.
pub(crate) fn find(table: &'static [Release], asked: &str) -> Option<&'static Release> {
    let asked = asked.strip_prefix('v').unwrap_or(asked);
    table.iter().find(|release| {
        let rest = release.version.strip_prefix('v').and_then(|version| version.strip_prefix(asked));
        rest.is_some_and(|rest| rest.is_empty() || (rest.starts_with('.') && asked.contains('.')))
    })
}

impl Module {
    /// Everything that `go build` finds in the module's directory.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        [("go.mod", self.go_mod), ("go.sum", self.go_sum)].into_iter().chain(self.sources.iter().copied())
    }

    /// The flags of `go build`, the same for everyone: they are part of the cache key.
    pub(crate) fn flags(&self) -> Vec<String> {
        let mut link = String::from("-s -w");
        for (name, value) in self.variables {
            link.push_str(" -X ");
            link.push_str(name);
            link.push('=');
            link.push_str(value);
        }
        vec!["-mod=readonly".into(), "-trimpath".into(), "-ldflags".into(), link]
    }

    /// The Go release that the module asks for, as `(major, minor)`.
    pub(crate) fn needed_go(&self) -> (u32, u32) {
        self.go_mod.lines().find_map(|line| line.strip_prefix("go ")).and_then(parse_go).unwrap_or((1, 21))
    }
}

impl Release {
    /// The names of its programs.
    pub(crate) fn programs(&self) -> impl Iterator<Item = &'static str> {
        self.modules.iter().flat_map(|module| module.programs).map(|(program, _)| *program)
    }

    /// The version and a digest of everything that the programs are built from.
    pub(crate) fn key(&self) -> String {
        let mut digest = Digest::default();
        for module in self.modules {
            digest.add(module.name);
            for (_, text) in module.files() {
                digest.add(text);
            }
            for (program, package) in module.programs {
                digest.add(program);
                digest.add(package);
            }
            for flag in module.flags() {
                digest.add(&flag);
            }
        }
        format!("{}-{:016x}", self.version, digest.0)
    }
}

/// Reads `1.26.0`, `go1.26.8` or `go1.27rc1` as `(1, 26)` or `(1, 27)`.
pub(crate) fn parse_go(text: &str) -> Option<(u32, u32)> {
    let text = text.trim();
    let mut numbers = text.strip_prefix("go").unwrap_or(text).split('.');
    let major = numbers.next()?.parse().ok()?;
    let minor: String = numbers.next()?.chars().take_while(char::is_ascii_digit).collect();
    Some((major, minor.parse().ok()?))
}

/// FNV-1a. It distinguishes sets of pins in one cache and is not meant to resist forgery.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    fn add(&mut self, text: &str) {
        for byte in text.bytes().chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn go_versions_are_read_in_every_form_that_go_prints() {
        let table = [
            ("1.26.0", Some((1, 26))),
            ("go1.26.8\n", Some((1, 26))),
            ("go1.27rc1", Some((1, 27))),
            ("devel", None),
            ("", None),
        ];
        for (text, want) in table {
            assert_eq!(parse_go(text), want, "{text:?}");
        }
    }

    #[test]
    fn the_pins_agree_with_the_version_they_are_sold_as() {
        let staging_modules = [(NEWEST, 33), (OLDEST, 31)];
        assert_eq!(RELEASES.len(), staging_modules.len());
        for (version, count) in staging_modules {
            let release = find(RELEASES, version).unwrap();
            let kubernetes = release.modules.iter().find(|m| m.name.starts_with("kubernetes")).unwrap();
            assert!(kubernetes.go_mod.contains(&format!("k8s.io/kubernetes {version} ")));
            let staging = version.replace("v1.", "v0.");
            let replaced = kubernetes.go_mod.lines().filter(|l| l.contains("=>"));
            assert_eq!(replaced.clone().count(), count, "{version}");
            assert!(replaced.clone().all(|l| l.ends_with(&staging)), "a replace line is of another version");
            let flags = kubernetes.flags().concat();
            let minor = version.split('.').nth(1).unwrap();
            for side in ["component-base/version", "client-go/pkg/version"] {
                assert!(flags.contains(&format!("{side}.gitVersion={version}")), "{flags}");
                assert!(flags.contains(&format!("{side}.gitMinor={minor}")), "{flags}");
            }
        }
    }

    #[test]
    fn every_program_of_somebody_else_is_a_tool_of_its_module() {
        let modules = RELEASES.iter().chain(CONTROL_LOOPS).chain([&KUBELETS, &HELM]).flat_map(|r| r.modules);
        for module in modules {
            for (program, package) in module.programs {
                let tool = |line: &str| line.trim().trim_start_matches("tool ") == *package;
                assert!(module.go_mod.lines().any(tool), "{program} is no tool of {}", module.name);
            }
        }
        for (release, name) in [(&KUBELETS, "sigs.k8s.io/kwok"), (&HELM, "helm.sh/helm/v3")] {
            let [module] = release.modules else { panic!("one module") };
            let (_, version) = release.version.split_once('-').unwrap();
            assert!(module.go_mod.contains(&format!("{name} {version} ")), "{name} {version}");
            assert!(module.variables.iter().all(|(_, value)| *value == version), "{name} {version}");
        }
    }

    #[test]
    fn a_release_is_found_by_its_minor_too() {
        let table = [
            ("1.34", Some(OLDEST)),
            ("v1.34", Some(OLDEST)),
            ("1.34.10", Some(OLDEST)),
            ("v1.37.1", Some(NEWEST)),
            ("1.3", None),
            ("1.34.1", None),
            ("1", None),
            ("", None),
        ];
        for (asked, want) in table {
            for releases in [RELEASES, CONTROL_LOOPS] {
                assert_eq!(find(releases, asked).map(|release| release.version), want, "{asked:?}");
            }
        }
    }

    #[test]
    fn our_own_programs_are_complete_and_of_the_same_release() {
        for release in [&INFORMERS, &ELECTOR] {
            let [module] = release.modules else { panic!("one module") };
            let staging = NEWEST.replace("v1.", "v0.");
            assert!(module.go_mod.contains(&format!("k8s.io/client-go {staging}")));
            let dir = format!("{}/../../tools/{}", env!("CARGO_MANIFEST_DIR"), module.name);
            let here: BTreeSet<_> = std::fs::read_dir(dir)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            assert_eq!(module.files().map(|(name, _)| name.to_owned()).collect::<BTreeSet<_>>(), here);
        }
    }

    #[test]
    fn the_key_follows_every_pin_and_flag() {
        const OTHER_SUM: &[Module] = &[Module { go_sum: "other", ..ETCD }];
        const OTHER_FLAG: &[Module] = &[Module { variables: &[("a", "b")], ..ETCD }];
        const OTHER_SOURCE: &[Module] = &[Module { sources: &[("main.go", "package main")], ..ETCD }];
        let key = |modules| Release { title: "t", version: "v1", modules }.key();
        let keys = BTreeSet::from([key(&[ETCD]), key(OTHER_SUM), key(OTHER_FLAG), key(OTHER_SOURCE)]);
        assert!(keys.len() == 4 && keys.contains(&key(&[ETCD])), "{keys:?}");
        assert!(keys.iter().all(|key| key.starts_with("v1-")));
    }
}
