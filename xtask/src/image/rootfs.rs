//! What is in the image: the program, the links to it, certificates, a user, `/tmp`, licences, and nothing else.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::variant::Variant;
use crate::archive::{Entry, Tree};

/// The user that the program runs as. A number, because a kubelet cannot tell whether a name is root's.
pub(crate) const USER: u32 = 65532;
pub(crate) const PROGRAM: &str = "bin/cloudberth";
pub(crate) const HELM: &str = "bin/helm";
/// Where the TLS libraries of Rust and Go look first.
pub(crate) const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";
pub(crate) const LICENCES: &str = "usr/share/licenses/cloudberth/licences.txt";

/// What goes in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) variant: Variant,
    pub(crate) program: &'a [u8],
    pub(crate) helm: Option<&'a [u8]>,
    pub(crate) licences: &'a str,
}

pub(crate) fn tree(parts: &Parts<'_>) -> Tree {
    let mut tree = Tree::from([
        (PROGRAM.to_owned(), Entry::program(parts.program)),
        (CERTIFICATES.to_owned(), Entry::file(certificates())),
        ("etc/passwd".to_owned(), Entry::file(passwd())),
        ("etc/group".to_owned(), Entry::file(group())),
        (LICENCES.to_owned(), Entry::file(parts.licences)),
        ("tmp".to_owned(), Entry::for_everybody()),
    ]);
    for name in links(parts.variant) {
        tree.insert(format!("bin/{name}"), Entry::link("cloudberth"));
    }
    if let Some(helm) = parts.helm {
        tree.insert(HELM.to_owned(), Entry::program(helm));
    }
    tree
}

/// Lines of a program that is replaced and the cloud that it is for, if it is for one. `cargo xtask docs` writes them from the
/// code's lists.
const REPLACED: &str = include_str!("replaced.txt");

/// The names of the programs that this one replaces, as far as this variant can.
pub(crate) fn links(variant: Variant) -> Vec<&'static str> {
    let lines = REPLACED.lines().map(|line| line.split_once(' ').unwrap_or((line, "")));
    lines.filter(|(_, cloud)| cloud.is_empty() || variant.has_cloud(cloud)).map(|(name, _)| name).collect()
}

fn passwd() -> String {
    format!("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:{USER}:{USER}:nonroot:/tmp:/sbin/nologin\n")
}

fn group() -> String {
    format!("root:x:0:\nnonroot:x:{USER}:\n")
}

/// Mozilla's list of authorities, as `Cargo.lock` pins it. Never the build machine's: it may hold a company's own.
pub(crate) fn certificates() -> String {
    let mut pem: Vec<String> =
        webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().map(|der| to_pem(der)).collect();
    pem.sort();
    pem.dedup();
    pem.concat()
}

pub(crate) fn to_pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(64));
        pem.push_str(line);
        pem.push('\n');
        rest = more;
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::Content;
    use rustls::RootCertStore;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    fn sample(variant: Variant, helm: Option<&[u8]>) -> Tree {
        tree(&Parts { variant, program: b"program", helm, licences: "licences\n" })
    }

    #[test]
    fn there_is_nothing_but_the_program_and_what_it_needs() {
        let paths: Vec<_> = sample(Variant::Plain, None).into_keys().collect();
        assert_eq!(
            paths,
            [
                "bin/binarylane-cloud-controller-manager",
                "bin/brightbox-cloud-controller-manager",
                "bin/cloudberth",
                "bin/cloudscale-cloud-controller-manager",
                "bin/rancher-fip-cluster-manager",
                "etc/group",
                "etc/passwd",
                CERTIFICATES,
                "tmp",
                LICENCES,
            ]
        );
    }

    #[test]
    fn a_variant_adds_what_it_is_named_after() {
        let lycke = sample(Variant::Lycke, None);
        let link = lycke.get("bin/cloudlycke-cloud-controller-manager");
        assert_eq!(link, Some(&Entry::link("cloudberth")));
        let rancher = sample(Variant::Rancher, Some(b"helm"));
        assert_eq!(rancher.get(HELM), Some(&Entry::program(*b"helm")));
    }

    #[test]
    fn the_user_is_not_root_and_has_a_place_to_write_to() {
        let tree = sample(Variant::Plain, None);
        let passwd = tree.get("etc/passwd").map(|entry| entry.content.clone());
        let Some(Content::File(passwd)) = passwd else { panic!("{passwd:?}") };
        let passwd = String::from_utf8(passwd).unwrap();
        assert!(passwd.contains("nonroot:x:65532:65532:nonroot:/tmp:"), "{passwd}");
        assert_eq!(tree.get("tmp"), Some(&Entry::for_everybody()));
    }

    #[test]
    fn every_certificate_is_one_that_the_program_takes() {
        let pem = certificates();
        let mut store = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            store.add(certificate.unwrap()).unwrap();
        }
        assert_eq!(store.len(), webpki_root_certs::TLS_SERVER_ROOT_CERTS.len());
        assert!(store.len() > 100, "{}", store.len());
        assert!(pem.lines().all(|line| line.len() <= 64));
    }
}
