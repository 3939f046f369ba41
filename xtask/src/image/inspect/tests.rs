//! The writer against the reader: what is written is found again, and what was tampered with is not taken.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, SystemTime};

use super::*;
use crate::archive::{self, Entry, pack};
use crate::image::oci::{Facts, Image, layout};
use crate::image::rootfs::{self, PROGRAM, Parts};
use crate::image::variant::{Arch, Variant};
use crate::workspace::Sample;

fn facts() -> Facts {
    Facts {
        name: "cloudberth".to_owned(),
        tag: "0.1.0".to_owned(),
        created: "2026-01-02T03:04:05Z".to_owned(),
        labels: BTreeMap::from([("org.opencontainers.image.version".to_owned(), "0.1.0".to_owned())]),
    }
}

fn sample(arch: Arch, program: &[u8]) -> Image {
    let parts = Parts { variant: Variant::Plain, program, helm: None, licences: "licences\n" };
    Image::new(arch, &rootfs::tree(&parts), &facts()).unwrap()
}

fn pair() -> Vec<Image> {
    vec![sample(Arch::Amd64, b"amd64 program"), sample(Arch::Arm64, b"arm64 program")]
}

#[test]
fn a_layout_has_an_image_for_every_processor() {
    let images_written = pair();
    let found = images(&layout(&images_written).unwrap()).unwrap();
    assert_eq!(found.len(), 2);
    for ((written, found), arch) in images_written.iter().zip(&found).zip(Arch::ALL) {
        assert_eq!(found.descriptor.digest, written.digest());
        assert_eq!(found.config.architecture, arch.name());
        let program = format!("{} program", arch.name());
        assert_eq!(file(&found.content, PROGRAM), Ok(program.as_bytes()));
        assert_eq!(found.config.settings.user, "65532:65532");
        assert_eq!(found.config.settings.entrypoint, ["/bin/cloudberth"]);
        assert_eq!(found.config.created, "2026-01-02T03:04:05Z");
    }
}

#[test]
fn an_archive_is_loaded_by_either_description_as_the_same_image() {
    let image = sample(Arch::Amd64, b"program");
    let files = unpack(&image.archive().unwrap()).unwrap();
    let oci = images(&files).unwrap();
    let docker = docker(&files).unwrap();
    let ([oci], [(names, config, content)]) = (oci.as_slice(), docker.as_slice()) else {
        panic!("{oci:?} {docker:?}")
    };
    assert_eq!(names, &["cloudberth:0.1.0"]);
    let annotations = &oci.descriptor.annotations;
    assert_eq!(annotations.get("io.containerd.image.name").map(String::as_str), Some("cloudberth:0.1.0"));
    assert_eq!(annotations.get("org.opencontainers.image.ref.name").map(String::as_str), Some("0.1.0"));
    assert_eq!(&oci.content, content);
    assert_eq!(oci.config.rootfs.diff_ids, config.rootfs.diff_ids);
    assert_eq!(oci.descriptor.digest, image.digest());
}

/// The program is read from files with different times, at different places.
#[test]
fn two_runs_write_the_same_bytes_whatever_the_times_of_the_files() {
    let places = Sample::new("image twice", &[("a/program", "the program"), ("b/program", "the program")]);
    let archives: Vec<_> = [("a/program", 1_000), ("b/program", 2_000_000_000)]
        .into_iter()
        .map(|(name, seconds)| {
            let path = places.workspace.path(name);
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
            let image = sample(Arch::Amd64, &archive::read(&path).unwrap());
            (image.digest().to_owned(), Sha256::of(&image.archive().unwrap()), layout(&[image]).unwrap())
        })
        .collect();
    assert_eq!(archives[0], archives[1]);
    let other = sample(Arch::Amd64, b"another program");
    assert_ne!(other.digest(), archives[0].0);
}

#[test]
fn a_byte_that_changed_is_noticed_in_every_file() {
    let whole = layout(&pair()).unwrap();
    let (mut refused, mut blobs) = (0, 0);
    for path in whole.keys().filter(|path| path.starts_with("blobs/")) {
        blobs += 1;
        let mut files = whole.clone();
        let Some(Entry { content: Content::File(bytes), .. }) = files.get_mut(path) else { panic!("{path}") };
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        let why = images(&files).unwrap_err();
        assert!(why.contains("other bytes"), "{path}: {why}");
        refused += 1;
        files.remove(path);
        assert!(images(&files).unwrap_err().contains("is missing"), "{path}");
    }
    // Two each of layers, configurations and manifests, and the index that names them.
    assert_eq!((refused, blobs), (7, 7));
}

#[test]
fn docker_refuses_a_layer_that_the_configuration_does_not_name() {
    let mut files = unpack(&sample(Arch::Amd64, b"program").archive().unwrap()).unwrap();
    let entries: Vec<DockerEntry> = parse(file(&files, "manifest.json").unwrap(), "manifest.json").unwrap();
    let layer = entries[0].layers[0].clone();
    let other =
        archive::gzip(&pack(&Tree::from([("bin/other".to_owned(), Entry::file("x"))])).unwrap()).unwrap();
    files.insert(layer, Entry::file(other));
    assert!(docker(&files).unwrap_err().contains("not the one that the configuration names"));
}
