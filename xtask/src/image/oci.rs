//! The image format: a layer, a configuration and a manifest, each named by the digest of its bytes.
//!
//! An archive is an OCI archive and a docker-archive at once: both descriptions point at the same blobs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::rootfs::{PROGRAM, USER};
use super::variant::Arch;
use crate::Result;
use crate::archive::{Entry, Sha256, Tree, gzip, pack};

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// What containerd calls the image when it loads an archive.
const FULL_NAME: &str = "io.containerd.image.name";
const TAG: &str = "org.opencontainers.image.ref.name";

/// What is said about an image besides its content.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// Without a tag.
    pub(crate) name: String,
    pub(crate) tag: String,
    /// In the form of RFC 3339.
    pub(crate) created: String,
    pub(crate) labels: BTreeMap<String, String>,
}

/// Where a blob is and what it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    pub(crate) media_type: String,
    pub(crate) digest: String,
    pub(crate) size: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) platform: Option<Platform>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Platform {
    pub(crate) architecture: String,
    pub(crate) os: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    schema_version: u8,
    media_type: String,
    pub(crate) config: Descriptor,
    pub(crate) layers: Vec<Descriptor>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Index {
    schema_version: u8,
    media_type: String,
    pub(crate) manifests: Vec<Descriptor>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Config {
    pub(crate) architecture: String,
    #[serde(rename = "config")]
    pub(crate) settings: Settings,
    pub(crate) created: String,
    history: Vec<History>,
    pub(crate) os: String,
    pub(crate) rootfs: RootFs,
}

/// How the program is started when nothing else is said.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Settings {
    pub(crate) entrypoint: Vec<String>,
    pub(crate) env: Vec<String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) user: String,
    pub(crate) working_dir: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct History {
    created: String,
    created_by: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RootFs {
    pub(crate) diff_ids: Vec<String>,
    r#type: String,
}

/// One entry of `manifest.json`, by which Docker loads an archive.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DockerEntry {
    pub(crate) config: String,
    pub(crate) repo_tags: Vec<String>,
    pub(crate) layers: Vec<String>,
}

/// An image for one processor.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    facts: Facts,
    blobs: BTreeMap<Sha256, Vec<u8>>,
    manifest: Descriptor,
    config: String,
    layer: String,
    pub(crate) compressed: usize,
}

impl Image {
    pub(crate) fn new(arch: Arch, content: &Tree, facts: &Facts) -> Result<Self> {
        let mut blobs = BTreeMap::new();
        let mut add = |media_type: &str, bytes: Vec<u8>| {
            let digest = Sha256::of(&bytes);
            let descriptor = Descriptor {
                media_type: media_type.to_owned(),
                digest: digest.to_string(),
                size: bytes.len(),
                platform: None,
                annotations: BTreeMap::new(),
            };
            blobs.insert(digest, bytes);
            descriptor
        };
        let plain = pack(content)?;
        let diff = Sha256::of(&plain).to_string();
        let layer = add(LAYER, gzip(&plain)?);
        let config = add(CONFIG, json(&configuration(arch, facts, diff))?);
        let manifest = Manifest {
            schema_version: 2,
            media_type: MANIFEST.to_owned(),
            config: config.clone(),
            layers: vec![layer.clone()],
            annotations: facts.labels.clone(),
        };
        let mut manifest = add(MANIFEST, json(&manifest)?);
        manifest.platform = Some(Platform { architecture: arch.name().to_owned(), os: "linux".to_owned() });
        let compressed = blobs.values().map(Vec::len).sum();
        let (config, layer) = (blob_path(&config.digest), blob_path(&layer.digest));
        Ok(Self { facts: facts.clone(), blobs, manifest, config, layer, compressed })
    }

    /// The digest by which a registry knows the image after a push.
    pub(crate) fn digest(&self) -> &str {
        &self.manifest.digest
    }

    /// One tar that `docker load`, `podman load`, `ctr images import` and `skopeo` take.
    pub(crate) fn archive(&self) -> Result<Vec<u8>> {
        let full = format!("{}:{}", self.facts.name, self.facts.tag);
        let docker = DockerEntry {
            config: self.config.clone(),
            repo_tags: vec![full],
            layers: vec![self.layer.clone()],
        };
        let mut tree = files(&[named(self.manifest.clone(), &self.facts)], &self.blobs)?;
        tree.insert("manifest.json".to_owned(), Entry::file(json(&[docker])?));
        pack(&tree)
    }
}

/// A layout for a push: one name for the images of all processors.
pub(crate) fn layout(images: &[Image]) -> Result<Tree> {
    let facts = &images.first().ok_or("an image for no processor at all")?.facts;
    let mut blobs = BTreeMap::new();
    for image in images {
        blobs.extend(image.blobs.clone());
    }
    let index = json(&index(images.iter().map(|image| image.manifest.clone()).collect()))?;
    let digest = Sha256::of(&index);
    let descriptor = Descriptor {
        media_type: INDEX.to_owned(),
        digest: digest.to_string(),
        size: index.len(),
        platform: None,
        annotations: BTreeMap::new(),
    };
    blobs.insert(digest, index);
    files(&[named(descriptor, facts)], &blobs)
}

fn configuration(arch: Arch, facts: &Facts, diff: String) -> Config {
    Config {
        architecture: arch.name().to_owned(),
        settings: Settings {
            entrypoint: vec![format!("/{PROGRAM}")],
            env: vec!["PATH=/bin".to_owned()],
            labels: facts.labels.clone(),
            user: format!("{USER}:{USER}"),
            working_dir: "/".to_owned(),
        },
        created: facts.created.clone(),
        history: vec![History { created: facts.created.clone(), created_by: "cargo xtask image".to_owned() }],
        os: "linux".to_owned(),
        rootfs: RootFs { diff_ids: vec![diff], r#type: "layers".to_owned() },
    }
}

fn index(manifests: Vec<Descriptor>) -> Index {
    Index { schema_version: 2, media_type: INDEX.to_owned(), manifests }
}

fn named(mut descriptor: Descriptor, facts: &Facts) -> Descriptor {
    descriptor.annotations.insert(FULL_NAME.to_owned(), format!("{}:{}", facts.name, facts.tag));
    descriptor.annotations.insert(TAG.to_owned(), facts.tag.clone());
    descriptor
}

fn files(named: &[Descriptor], blobs: &BTreeMap<Sha256, Vec<u8>>) -> Result<Tree> {
    let mut tree = Tree::from([
        ("oci-layout".to_owned(), Entry::file(r#"{"imageLayoutVersion":"1.0.0"}"#)),
        ("index.json".to_owned(), Entry::file(json(&index(named.to_vec()))?)),
    ]);
    for (digest, bytes) in blobs {
        tree.insert(format!("blobs/sha256/{}", digest.hex()), Entry::file(bytes.clone()));
    }
    Ok(tree)
}

/// Where the blob of this digest is, in a layout and in an archive.
pub(crate) fn blob_path(digest: &str) -> String {
    format!("blobs/{}", digest.replacen(':', "/", 1))
}

fn json(value: &(impl Serialize + ?Sized)) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|why| format!("cannot write JSON: {why}"))
}
