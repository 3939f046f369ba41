//! Certificates and keys of one control plane.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose, SanType,
};

use crate::{Credentials, Error};

/// The group whose members may do everything, before any role exists.
const ADMINS: &str = "system:masters";

/// Clients with a certificate: their files, their names and their groups.
const CLIENTS: [(&str, &str, Option<&str>); 3] = [
    ("scheduler", "system:kube-scheduler", None),
    ("controller-manager", "system:kube-controller-manager", None),
    ("kwok", "kwok", Some(ADMINS)),
];

/// Everything, as files for the programs and in memory for [`crate::Client`].
#[derive(Debug)]
pub(crate) struct Pki {
    pub(crate) dir: PathBuf,
    pub(crate) ca_pem: String,
    pub(crate) admin: Credentials,
}

impl Pki {
    /// Makes and writes everything into `dir`.
    pub(crate) fn make(dir: &Path) -> Result<Self, Error> {
        fs::create_dir_all(dir).map_err(Error::io("cannot create", dir))?;
        let write = |name: &str, text: &str| {
            let path = dir.join(name);
            fs::write(&path, text).map_err(Error::io("cannot write", &path))
        };
        let ca = authority()?;
        write("ca.crt", &ca.pem())?;

        let mut serving = named("kube-apiserver", None);
        serving.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        serving.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST))];
        for name in ["localhost", "kubernetes", "kubernetes.default.svc"] {
            serving.subject_alt_names.push(SanType::DnsName(name.try_into()?));
        }
        let (cert, key) = signed(&serving, &ca)?;
        write("apiserver.crt", &cert)?;
        write("apiserver.key", &key)?;

        let client = |file: &str, name: &str, group: Option<&str>| -> Result<_, Error> {
            let mut client = named(name, group);
            client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            let (cert, key) = signed(&client, &ca)?;
            write(&format!("{file}.crt"), &cert)?;
            write(&format!("{file}.key"), &key)?;
            Ok((cert, key))
        };
        for (file, name, group) in CLIENTS {
            client(file, name, group)?;
        }
        let (cert, key) = client("admin", "cloudberth-e2e", Some(ADMINS))?;

        let accounts = KeyPair::generate()?;
        write("accounts.key", &accounts.serialize_pem())?;
        write("accounts.pub", &accounts.public_key_pem())?;

        let admin = Credentials::Certificate { cert_pem: cert, key_pem: key };
        Ok(Self { dir: dir.to_path_buf(), ca_pem: ca.pem(), admin })
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }
}

fn authority() -> Result<CertifiedIssuer<'static, KeyPair>, Error> {
    let mut params = named("cloudberth-e2e CA", None);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    Ok(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?)
}

fn named(common: &str, organization: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common);
    if let Some(organization) = organization {
        params.distinguished_name.push(DnType::OrganizationName, organization);
    }
    params
}

fn signed(params: &CertificateParams, ca: &CertifiedIssuer<'_, KeyPair>) -> Result<(String, String), Error> {
    let key = KeyPair::generate()?;
    Ok((params.signed_by(&key, ca)?.pem(), key.serialize_pem()))
}
