//! Reading an image back: every digest and size is checked against the bytes that it names.

use serde::de::DeserializeOwned;

use super::oci::{Config, Descriptor, DockerEntry, Index, Manifest, blob_path};
use crate::Result;
use crate::archive::{Content, Sha256, Tree, gunzip, unpack};

/// An image that was read back.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// With the name and the tag on it, if it has them.
    pub(crate) descriptor: Descriptor,
    pub(crate) config: Config,
    /// What is in it: the layers, one over the other.
    pub(crate) content: Tree,
}

/// The images of a layout or of an OCI archive, by what `index.json` says.
pub(crate) fn images(files: &Tree) -> Result<Vec<Found>> {
    let version = file(files, "oci-layout")?;
    if !String::from_utf8_lossy(version).contains("\"1.0.0\"") {
        return Err("oci-layout names no version 1.0.0".to_owned());
    }
    let index: Index = parse(file(files, "index.json")?, "index.json")?;
    let mut found = Vec::new();
    for descriptor in index.manifests {
        let bytes = blob(files, &descriptor)?;
        if descriptor.media_type.contains("image.index") {
            let inner: Index = parse(bytes, &descriptor.digest)?;
            for descriptor in inner.manifests {
                found.push(image(files, descriptor)?);
            }
        } else {
            found.push(image(files, descriptor)?);
        }
    }
    Ok(found)
}

fn image(files: &Tree, descriptor: Descriptor) -> Result<Found> {
    let manifest: Manifest = parse(blob(files, &descriptor)?, &descriptor.digest)?;
    let config: Config = parse(blob(files, &manifest.config)?, &manifest.config.digest)?;
    let layers: Result<Vec<&[u8]>> = manifest.layers.iter().map(|layer| blob(files, layer)).collect();
    let content = content(&layers?, &config)?;
    if descriptor.platform.as_ref().is_some_and(|platform| platform.architecture != config.architecture) {
        return Err(format!("{}: its platform is not the one of its configuration", descriptor.digest));
    }
    Ok(Found { descriptor, config, content })
}

/// What Docker would load from an archive, by what `manifest.json` says: names and image.
pub(crate) fn docker(files: &Tree) -> Result<Vec<(Vec<String>, Config, Tree)>> {
    let entries: Vec<DockerEntry> = parse(file(files, "manifest.json")?, "manifest.json")?;
    entries
        .into_iter()
        .map(|entry| {
            let config: Config = parse(file(files, &entry.config)?, &entry.config)?;
            let layers: Result<Vec<&[u8]>> = entry.layers.iter().map(|path| file(files, path)).collect();
            let content = content(&layers?, &config)?;
            Ok((entry.repo_tags, config, content))
        })
        .collect()
}

fn content(layers: &[&[u8]], config: &Config) -> Result<Tree> {
    if layers.len() != config.rootfs.diff_ids.len() {
        return Err("the configuration does not have as many layers as the manifest".to_owned());
    }
    let mut content = Tree::new();
    for (packed, diff) in layers.iter().zip(&config.rootfs.diff_ids) {
        let plain = gunzip(packed)?;
        if Sha256::of(&plain).to_string() != *diff {
            return Err(format!("a layer is not the one that the configuration names: {diff}"));
        }
        content.extend(unpack(&plain)?);
    }
    Ok(content)
}

fn blob<'a>(files: &'a Tree, descriptor: &Descriptor) -> Result<&'a [u8]> {
    let bytes = file(files, &blob_path(&descriptor.digest))?;
    let named =
        Sha256::parse(&descriptor.digest).ok_or_else(|| format!("{} is no digest", descriptor.digest))?;
    if Sha256::of(bytes) != named {
        return Err(format!("{named}: the blob has other bytes"));
    }
    if bytes.len() != descriptor.size {
        return Err(format!("{named}: {} bytes, not {}", bytes.len(), descriptor.size));
    }
    Ok(bytes)
}

pub(crate) fn file<'a>(files: &'a Tree, path: &str) -> Result<&'a [u8]> {
    match files.get(path).map(|entry| &entry.content) {
        Some(Content::File(bytes)) => Ok(bytes),
        _ => Err(format!("{path} is missing")),
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8], name: &str) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|why| format!("{name}: {why}"))
}

#[cfg(test)]
mod tests;
