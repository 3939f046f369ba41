//! What a repository and a registry answer, as a pure function of the path and what is published.

use ring::digest::{SHA256, digest};
use serde_json::json;

use super::Chart;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const CONTENT: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// What is found at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) kind: &'static str,
    pub(super) body: Vec<u8>,
}

impl Found {
    /// The digest, as registries write it.
    pub(super) fn digest(&self) -> String {
        sha256(&self.body)
    }
}

fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    digest(&SHA256, bytes).as_ref().iter().fold("sha256:".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// What a repository at `/charts/`, and a registry with everything under `charts/`, have at this path.
pub(super) fn find(charts: &[Chart], path: &str) -> Option<Found> {
    if let Some(rest) = path.strip_prefix("/charts/") {
        return repository(charts, rest);
    }
    if path == "/v2/" {
        return Some(Found { kind: "application/json", body: b"{}".to_vec() });
    }
    let (name, rest) = path.strip_prefix("/v2/charts/")?.split_once('/')?;
    let named = || charts.iter().filter(|chart| chart.name() == name);
    if rest == "tags/list" {
        // A tag has `_` where a version has `+`.
        let tags: Vec<_> = named().map(tag).collect();
        let body = json!({"name": format!("charts/{name}"), "tags": tags}).to_string().into_bytes();
        return (!tags.is_empty()).then_some(Found { kind: "application/json", body });
    }
    if let Some(wanted) = rest.strip_prefix("manifests/") {
        return named()
            .map(|chart| (tag(chart), manifest(chart)))
            .find_map(|(tag, manifest)| (tag == wanted || manifest.digest() == wanted).then_some(manifest));
    }
    let wanted = rest.strip_prefix("blobs/")?;
    named().flat_map(blobs).find(|blob| blob.digest() == wanted)
}

fn tag(chart: &Chart) -> String {
    chart.version().replace('+', "_")
}

fn repository(charts: &[Chart], rest: &str) -> Option<Found> {
    if rest == "index.yaml" {
        let mut entries = serde_json::Map::new();
        for chart in charts {
            let mut entry = chart.metadata();
            if let Some(entry) = entry.as_object_mut() {
                entry.insert("urls".to_owned(), json!([file(chart)]));
                entry.insert("created".to_owned(), json!("2026-01-01T00:00:00Z"));
                entry.insert(
                    "digest".to_owned(),
                    json!(sha256(&chart.archive()).trim_start_matches("sha256:")),
                );
            }
            if let Some(list) = entries.entry(chart.name()).or_insert_with(|| json!([])).as_array_mut() {
                list.push(entry);
            }
        }
        let index = json!({"apiVersion": "v1", "generated": "2026-01-01T00:00:00Z", "entries": entries});
        return Some(Found { kind: "text/yaml", body: index.to_string().into_bytes() });
    }
    let chart = charts.iter().find(|chart| file(chart) == rest)?;
    Some(Found { kind: "application/gzip", body: chart.archive() })
}

fn file(chart: &Chart) -> String {
    format!("{}-{}.tgz", chart.name(), chart.version())
}

fn blobs(chart: &Chart) -> [Found; 2] {
    let config = Found { kind: "application/octet-stream", body: chart.metadata().to_string().into_bytes() };
    [config, Found { kind: "application/octet-stream", body: chart.archive() }]
}

fn manifest(chart: &Chart) -> Found {
    let [config, content] = blobs(chart).map(|blob| (blob.digest(), blob.body.len()));
    let part = |kind, (digest, size)| json!({"mediaType": kind, "digest": digest, "size": size});
    let body = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": part(CONFIG, config),
        "layers": [part(CONTENT, content)],
    });
    Found { kind: MANIFEST, body: body.to_string().into_bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_leads_from_tag_to_manifest_to_blobs() {
        let charts = [Chart::new("lb", "0.1.0"), Chart::new("lb", "0.2.0+b")];
        let at = |path: &str| find(&charts, path);
        let text = |found: Found| String::from_utf8(found.body).unwrap();
        assert_eq!(
            text(at("/v2/charts/lb/tags/list").unwrap()),
            r#"{"name":"charts/lb","tags":["0.1.0","0.2.0_b"]}"#
        );
        let manifest = at("/v2/charts/lb/manifests/0.2.0_b").unwrap();
        assert_eq!(at(&format!("/v2/charts/lb/manifests/{}", manifest.digest())), Some(manifest.clone()));
        let manifest: serde_json::Value = serde_json::from_str(&text(manifest)).unwrap();
        let content = manifest["layers"][0]["digest"].as_str().unwrap();
        assert_eq!(at(&format!("/v2/charts/lb/blobs/{content}")).unwrap().body, charts[1].archive());
        assert_eq!(at("/charts/lb-0.1.0.tgz").unwrap().body, charts[0].archive());
        let index: serde_json::Value =
            serde_json::from_str(&text(at("/charts/index.yaml").unwrap())).unwrap();
        assert_eq!(index["entries"]["lb"][1]["urls"][0], "lb-0.2.0+b.tgz");
        for path in ["/", "/v2/charts/other/tags/list", "/v2/charts/lb/manifests/9", "/charts/x.tgz"] {
            assert_eq!(at(path), None, "{path}");
        }
    }
}
