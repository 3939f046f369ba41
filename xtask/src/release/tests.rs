//! A release from stand-ins: what is in the folder, and that its checksums hold.

use std::process::Command;

use super::*;
use crate::archive::{Content, gunzip, unpack};
use crate::image::MadeImage;
use crate::workspace::Sample;

const CHANGELOG: &str = "# Changelog\n\n## Unreleased\n\n- New.\n\n## 0.1.0 (2026-01-02)\n\n- First.\n- Second.\n\n## 0.0.1\n\n- Old.\n";

/// The image of an earlier run: files, and what is said about them.
fn made(sample: &Sample, variant: &str) -> Made {
    let dir = sample.workspace.path(variant);
    let file = format!("cloudberth-0.1.0-{variant}-linux-amd64");
    let mut files = BTreeMap::new();
    for ending in ["", ".tar", ".cdx.json", ".provenance.json", ".licences.txt"] {
        let (name, text) = (format!("{file}{ending}"), format!("{variant}{ending}"));
        write(&dir.join(&name), text.as_bytes()).unwrap();
        files.insert(name, Sha256::of(text.as_bytes()));
    }
    let image = MadeImage {
        arch: "amd64".to_owned(),
        file,
        digest: Sha256::of(b"manifest").to_string(),
        compressed: 1,
        program: 1,
        files,
    };
    Made {
        version: "0.1.0".to_owned(),
        variant: variant.to_owned(),
        name: "cloudberth".to_owned(),
        revision: "abc".to_owned(),
        images: vec![image],
        skipped: BTreeMap::from([("arm64".to_owned(), "no compiler".to_owned())]),
        dir,
    }
}

fn inputs(sample: &Sample) -> Inputs {
    Inputs {
        images: vec![made(sample, "plain"), made(sample, "rancher")],
        chart: chart::package(&sample.workspace.path("chart")).unwrap(),
        manifests: manifests(&sample.workspace).unwrap(),
        changes: changes(CHANGELOG, "0.1.0").unwrap(),
    }
}

fn sample(name: &str) -> Sample {
    let files = [
        ("chart/Chart.yaml", "name: cloudberth\nversion: 0.1.0\n"),
        ("clouds/cloudscale/manifest.yaml", "kind: ClusterRole\n"),
        ("crates/rancher-fip/manifest.yaml", "kind: Deployment\n"),
        ("deploy/cloudscale.yaml", "kind: DaemonSet\n"),
        ("deploy/monitoring/dashboard.json", "{}\n"),
        ("deploy/monitoring/tests/leader.yaml", "tests: []\n"),
        ("docs/example.yaml", "kind: Service\n"),
    ];
    Sample::new(name, &files)
}

#[test]
fn the_folder_has_everything_and_its_checksums_hold() {
    let sample = sample("release");
    let dir = sample.workspace.path("out/0.1.0");
    let sums = assemble(&inputs(&sample), &dir).unwrap();
    let names: Vec<&str> = sums.lines().map(|line| line.split_once("  ").unwrap().1).collect();
    let mut expected = vec![CHANGES.to_owned(), "cloudberth-0.1.0.tgz".to_owned(), "images.txt".to_owned()];
    for variant in ["plain", "rancher"] {
        for ending in ["", ".tar", ".cdx.json", ".provenance.json", ".licences.txt"] {
            expected.push(format!("cloudberth-0.1.0-{variant}-linux-amd64{ending}"));
        }
    }
    for name in
        ["cloudscale.yaml", "rancher-fip.yaml", "deploy/cloudscale.yaml", "deploy/monitoring/dashboard.json"]
    {
        expected.push(format!("manifests/{name}"));
    }
    expected.sort();
    assert_eq!(names, expected);
    let written = crate::image::read_tree(&dir).unwrap();
    assert_eq!(written.len(), expected.len() + 1, "a file has no checksum");
    let ran =
        Command::new("sha256sum").args(["--check", "--strict", SUMS]).current_dir(&dir).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));

    let text = |name: &str| String::from_utf8(read(&dir.join(name)).unwrap()).unwrap();
    assert_eq!(text(CHANGES), "# cloudberth 0.1.0\n\n- First.\n- Second.\n");
    assert!(text("images.txt").contains("plain arm64 skipped: no compiler"));
    assert_eq!(text("manifests/deploy/cloudscale.yaml"), "kind: DaemonSet\n");
    let chart = unpack(&gunzip(&read(&dir.join("cloudberth-0.1.0.tgz")).unwrap()).unwrap()).unwrap();
    assert!(chart.contains_key("cloudberth/Chart.yaml"));

    // Once more, the same; and a file that is damaged does not pass.
    assert_eq!(assemble(&inputs(&sample), &dir).unwrap(), sums);
    write(&dir.join("images.txt"), b"another").unwrap();
    let ran =
        Command::new("sha256sum").args(["--check", "--strict", SUMS]).current_dir(&dir).output().unwrap();
    assert!(!ran.status.success());
}

#[test]
fn an_image_that_changed_after_it_was_built_is_refused() {
    let sample = sample("release changed");
    let inputs = inputs(&sample);
    write(&inputs.images[0].dir.join("cloudberth-0.1.0-plain-linux-amd64.tar"), b"another").unwrap();
    let why = assemble(&inputs, &sample.workspace.path("out")).unwrap_err();
    assert!(why.contains("linux-amd64.tar is not the file that image.json names"), "{why}");
}

#[test]
fn a_folder_of_somebody_else_is_left_alone() {
    let sample = sample("release other");
    let why = assemble(&inputs(&sample), &sample.workspace.path("docs")).unwrap_err();
    assert!(why.contains("holds no release") && sample.workspace.path("docs/example.yaml").exists(), "{why}");
}

#[test]
fn the_section_of_the_version_is_taken_or_that_of_what_is_to_come() {
    assert_eq!(changes(CHANGELOG, "0.0.1"), Ok("# cloudberth 0.0.1\n\n- Old.\n".to_owned()));
    assert_eq!(changes(CHANGELOG, "0.2.0"), Ok("# cloudberth 0.2.0\n\n- New.\n".to_owned()));
    assert!(changes("# Changelog\n", "0.1.0").unwrap_err().contains("neither"));
    assert!(changes("## Unreleased\n\n## 0.0.1\n\n- Old.\n", "0.1.0").unwrap_err().contains("says nothing"));
}

#[test]
fn nothing_is_published() {
    let why =
        command(&sample("release wet").workspace, lexopt::Parser::from_args::<[&str; 0]>([])).unwrap_err();
    assert!(why.contains("--dry-run"), "{why}");
}

/// The images that a manifest or a chart's values name.
fn references_in(manifest: &str) -> Vec<String> {
    let image = |line: &str| {
        Some(line.trim().trim_start_matches("- ").strip_prefix("image: ")?.trim_matches('"').to_owned())
    };
    manifest.lines().filter_map(image).collect()
}

/// The real chart, manifests and image around a program that is none: what whoever installs from the folder relies on.
#[test]
#[cfg(target_os = "linux")]
fn a_folder_can_be_installed_from() {
    let scratch = Sample::new("release whole", &[("program", "#!/bin/sh\nexit 0\n")]);
    let asked = Asked {
        variants: vec![Variant::Plain, Variant::Lycke],
        program: Some(scratch.workspace.path("program")),
        output: Some(scratch.workspace.path("out")),
    };
    let workspace = Workspace::find().unwrap();
    let (sums, dir) = release(&workspace, &asked).unwrap();

    // Every file has a checksum that holds, as whoever downloads it checks.
    let ran =
        Command::new("sha256sum").args(["--check", "--strict", SUMS]).current_dir(&dir).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
    assert_eq!(crate::image::read_tree(&dir).unwrap().len(), sums.lines().count() + 1);

    // Each archive is loaded by both descriptions, and its program is the one beside it.
    let program = read(&scratch.workspace.path("program")).unwrap();
    let mut known = Vec::new();
    let archives = sums.lines().filter_map(|line| line.split_once("  ")).map(|(_, name)| name);
    for name in archives.filter(|name| crate::workspace::has_extension(name, "tar")) {
        let files = unpack(&read(&dir.join(name)).unwrap()).unwrap();
        let [oci] = crate::image::images(&files).unwrap().try_into().unwrap();
        let [(tags, config, content)] = crate::image::docker(&files).unwrap().try_into().unwrap();
        assert_eq!(oci.content, content, "{name}");
        assert_eq!(content["bin/cloudberth"].content, Content::File(program.clone()), "{name}");
        assert_eq!(read(&dir.join(name.trim_end_matches(".tar"))).unwrap(), program, "{name}");
        assert_eq!(
            (config.settings.user.as_str(), &oci.config.settings.user),
            ("65532:65532", &config.settings.user)
        );
        let digests = String::from_utf8(read(&dir.join("images.txt")).unwrap()).unwrap();
        assert!(digests.contains(&oci.descriptor.digest), "{digests}");
        for ending in ["cdx.json", "provenance.json", "licences.txt"] {
            let beside = name.replace("tar", ending);
            assert!(!read(&dir.join(&beside)).unwrap().is_empty(), "{beside}");
        }
        known.extend(tags);
    }
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(known, [format!("cloudberth:{version}"), format!("cloudberth:{version}-lycke")]);

    // The chart and the manifests name images of the folder, but for Rancher, which is not in this one.
    let package = read(&dir.join(format!("cloudberth-{version}.tgz"))).unwrap();
    let chart = unpack(&gunzip(&package).unwrap()).unwrap();
    let in_chart = |name: &str| match &chart[&format!("cloudberth/{name}")].content {
        Content::File(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        other => panic!("{name}: {other:?}"),
    };
    assert!(in_chart("Chart.yaml").contains(&format!("appVersion: \"{version}\"")));
    let default = references_in(&in_chart("values.yaml").replace("repository: ", "image: "));
    assert_eq!(default.first().map(String::as_str), Some("cloudberth"));
    known.push(format!("cloudberth:{version}-rancher"));
    let (mut named, mut manifests) = (0, 0);
    for (file, entry) in crate::image::read_tree(&dir.join("manifests")).unwrap() {
        let Content::File(bytes) = entry.content else { continue };
        manifests += usize::from(file.ends_with("manifest.yaml"));
        for reference in references_in(&String::from_utf8(bytes).unwrap()) {
            assert!(known.contains(&reference), "{file}: {reference} is not in the folder");
            named += 1;
        }
    }
    assert!(manifests >= 5 && named >= manifests, "{manifests} {named}");
    assert!(String::from_utf8(read(&dir.join(CHANGES)).unwrap()).unwrap().lines().count() > 3);
}
