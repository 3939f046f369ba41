//! What is built for a Kubernetes version: pinned modules, packages and link flags.

/// The Kubernetes version that tests use unless they ask for another.
pub const NEWEST: &str = "v1.37.1";

/// One Go module of ours and the programs built from it.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) name: &'static str,
    pub(crate) go_mod: &'static str,
    pub(crate) go_sum: &'static str,
    /// Program name and the package that it is built from.
    pub(crate) programs: &'static [(&'static str, &'static str)],
    /// Variables set at link time. Without them the programs report a version no client understands.
    pub(crate) variables: &'static [(&'static str, &'static str)],
}

/// A Kubernetes version and the modules that give it.
#[derive(Debug)]
pub(crate) struct Release {
    pub(crate) version: &'static str,
    pub(crate) modules: &'static [Module],
}

/// The versions that can be built.
pub(crate) const RELEASES: &[Release] = &[Release { version: NEWEST, modules: &[ETCD, KUBERNETES_1_37] }];

const ETCD: Module = Module {
    name: "etcd",
    go_mod: include_str!("../../../tools/etcd/go.mod"),
    go_sum: include_str!("../../../tools/etcd/go.sum"),
    programs: &[("etcd", "go.etcd.io/etcd/server/v3")],
    variables: &[],
};

const KUBERNETES_1_37: Module = Module {
    name: "kubernetes",
    go_mod: include_str!("../../../tools/kubernetes/go.mod"),
    go_sum: include_str!("../../../tools/kubernetes/go.sum"),
    programs: &[
        ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
        ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    ],
    variables: &[
        ("k8s.io/component-base/version.gitVersion", "v1.37.1"),
        ("k8s.io/component-base/version.gitMajor", "1"),
        ("k8s.io/component-base/version.gitMinor", "37"),
        ("k8s.io/client-go/pkg/version.gitVersion", "v1.37.1"),
        ("k8s.io/client-go/pkg/version.gitMajor", "1"),
        ("k8s.io/client-go/pkg/version.gitMinor", "37"),
    ],
};

impl Module {
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
    /// The version and a digest of everything that decides what the programs are.
    pub(crate) fn key(&self) -> String {
        let mut digest = Digest::default();
        for module in self.modules {
            for text in [module.name, module.go_mod, module.go_sum] {
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

/// FNV-1a. It tells one set of pins from the next on one machine; nobody is to be kept from forging it.
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
        for release in RELEASES {
            let kubernetes = release.modules.iter().find(|m| m.name == "kubernetes").unwrap();
            assert!(kubernetes.go_mod.contains(&format!("k8s.io/kubernetes {} ", release.version)));
            let staging = release.version.replace("v1.", "v0.");
            let replaced = kubernetes.go_mod.lines().filter(|l| l.contains("=>"));
            assert_eq!(replaced.clone().count(), 33);
            assert!(replaced.clone().all(|l| l.ends_with(&staging)), "a replace line is of another version");
            assert!(kubernetes.flags().concat().contains(&format!("version.gitVersion={}", release.version)));
            assert!(kubernetes.needed_go() >= (1, 26));
        }
    }

    #[test]
    fn the_key_follows_every_pin_and_flag() {
        const OTHER_SUM: &[Module] = &[Module { go_sum: "other", ..ETCD }];
        const OTHER_FLAG: &[Module] = &[Module { variables: &[("a", "b")], ..ETCD }];
        let key = |modules| Release { version: "v1", modules }.key();
        let keys = [key(&[ETCD]), key(OTHER_SUM), key(OTHER_FLAG)];
        assert_eq!(key(&[ETCD]), keys[0]);
        assert!(keys[0] != keys[1] && keys[0] != keys[2] && keys[1] != keys[2]);
        assert!(keys[0].starts_with("v1-"));
    }
}
