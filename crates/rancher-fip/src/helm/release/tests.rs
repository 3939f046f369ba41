use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use serde_json::json;

use super::*;

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn body(status: &str, description: &str) -> Value {
    json!({
        "name": "lb",
        "info": {
            "first_deployed": "2026-01-01T10:00:00.5Z", "last_deployed": "2026-01-01T11:00:00.123456789+01:00",
            "deleted": "", "description": description, "status": status, "notes": "x",
        },
        "chart": {"metadata": {"name": "lb", "version": "0.2.0"}, "templates": [{"name": "a", "data": "aGVsbG8="}]},
        "config": {"password": "s3cr3t"},
        "manifest": "---\nkind: ConfigMap\n",
        "version": 3,
        "namespace": "fip",
    })
}

fn record(revision: u32, status: &str, data: &[u8]) -> ReleaseRecord {
    ReleaseRecord {
        key: ObjectKey::new("fip", &format!("sh.helm.release.v1.lb.v{revision}")),
        uid: format!("u{revision}"),
        resource_version: "7".to_owned(),
        created: "2026-01-01T09:00:00Z".parse().ok(),
        release: "lb".to_owned(),
        revision: revision.to_string(),
        status: status.to_owned(),
        modified_at: String::new(),
        data: STANDARD.encode(data).into_bytes(),
    }
}

fn compressed(revision: u32, status: &str, description: &str) -> ReleaseRecord {
    record(revision, status, &gzip(body(status, description).to_string().as_bytes()))
}

#[test]
fn the_newest_revision_counts_in_whatever_order_they_come() {
    let records =
        [compressed(9, "superseded", ""), compressed(10, "deployed", ""), compressed(8, "failed", "")];
    let state = read_release(&records).unwrap().unwrap();
    assert_eq!(
        (state.revision, state.status, state.chart_version.as_str()),
        (10, ReleaseStatus::Deployed, "0.2.0")
    );
    let history: Vec<_> = state.history.iter().map(|(revision, status)| (*revision, status.name())).collect();
    assert_eq!(history, [(10, "deployed"), (9, "superseded"), (8, "failed")]);
    assert_eq!(state.record.name, "sh.helm.release.v1.lb.v10");
    assert_eq!(state.updated, "2026-01-01T10:00:00.123456789Z".parse().ok());
    assert_eq!(state.config, json!({"password": "s3cr3t"}));
    let shown = format!("{state:?} {records:?}");
    assert!(!shown.contains("s3cr3t"), "RF-152 {shown}");
    assert_eq!(read_release(&[]).unwrap(), None, "RF-57");
}

#[test]
fn old_records_are_not_compressed() {
    let plain = record(1, "deployed", body("deployed", "").to_string().as_bytes());
    assert_eq!(read_release(&[plain]).unwrap().unwrap().status, ReleaseStatus::Deployed);
}

#[test]
fn the_values_that_we_applied_last_are_known_whatever_others_did_since() {
    let (a, b) = (values::hash("a"), values::hash("b"));
    let ours = |revision, hash: &str| compressed(revision, "superseded", &values::description(hash));
    let table = [
        ("ours is the newest", vec![ours(2, &b), ours(1, &a)], Some(b.clone())),
        (
            "somebody rolled back",
            vec![compressed(3, "deployed", "Rollback to 1"), ours(2, &b), ours(1, &a)],
            Some(b),
        ),
        ("never ours", vec![compressed(1, "deployed", "Install complete")], None),
        (
            "an old record is damaged",
            vec![compressed(3, "deployed", "Upgrade complete"), record(2, "superseded", b"x"), ours(1, &a)],
            Some(a),
        ),
    ];
    for (case, records, want) in table {
        assert_eq!(read_release(&records).unwrap().unwrap().values_hash, want, "{case}");
    }
}

#[test]
fn the_age_of_a_removal_counts_from_its_beginning() {
    let with = |status: &str, deleted: &str, modified: &str| {
        let mut body = body(status, "");
        body["info"]["deleted"] = json!(deleted);
        let record = record(1, status, &gzip(body.to_string().as_bytes()));
        let state = read_release(&[ReleaseRecord { modified_at: modified.to_owned(), ..record }]);
        state.unwrap().unwrap().updated.unwrap().to_string()
    };
    assert_eq!(with("uninstalling", "2026-01-02T00:00:00Z", ""), "2026-01-02T00:00:00Z");
    assert_eq!(with("uninstalling", "", "1767312000"), "2026-01-02T00:00:00Z");
    assert_eq!(with("uninstalling", "0001-01-01T00:00:00Z", "x"), "2026-01-01T10:00:00.123456789Z");
    assert_eq!(with("pending-upgrade", "2026-01-02T00:00:00Z", "1"), "2026-01-01T10:00:00.123456789Z");
}

#[test]
fn a_record_without_times_is_as_old_as_its_secret() {
    let body = json!({"info": {"status": "pending-install"}, "chart": {"metadata": {"version": "1.0.0"}}});
    let state = read_release(&[record(1, "pending-install", body.to_string().as_bytes())]).unwrap().unwrap();
    assert_eq!(state.updated, "2026-01-01T09:00:00Z".parse().ok());
    assert_eq!((state.status, state.config), (ReleaseStatus::PendingInstall, Value::Null));
}

#[test]
fn a_record_that_cannot_be_read_is_named_and_brings_nothing_down() {
    let good = gzip(body("deployed", "").to_string().as_bytes());
    let cut = good[..good.len() / 2].to_vec();
    let mut flipped = good;
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0xff;
    let table = [
        ("not base64", ReleaseRecord { data: b"*".to_vec(), ..record(1, "deployed", b"") }),
        ("nothing", record(1, "deployed", b"")),
        ("no JSON", record(1, "deployed", b"hello")),
        ("another JSON", record(1, "deployed", b"[]")),
        ("no chart", record(1, "deployed", br#"{"info":{"status":"deployed"}}"#)),
        ("cut off", record(1, "deployed", &cut)),
        ("damaged", record(1, "deployed", &flipped)),
        ("no revision", ReleaseRecord { revision: "newest".to_owned(), ..compressed(1, "deployed", "") }),
        (
            "a revision that is too large",
            ReleaseRecord { revision: "99999999999".to_owned(), ..compressed(1, "deployed", "") },
        ),
    ];
    for (case, bad) in table {
        let error = read_release(&[bad]).unwrap_err().to_string();
        assert!(error.contains("fip/sh.helm.release.v1.lb.v1 cannot be read"), "{case}: {error}");
        assert!(!error.contains("s3cr3t"), "RF-152 {case}: {error}");
    }
}

#[test]
fn a_bomb_is_not_inflated() {
    let bomb = record(1, "deployed", &gzip(&vec![b' '; 1 << 20]));
    assert!(bomb.data.len() < 1 << 14, "{} bytes", bomb.data.len());
    assert_eq!(read_within(&bomb, 1 << 16).err().unwrap().why, "it is too large");
    let honest = compressed(1, "deployed", "");
    assert!(read_within(&honest, 1 << 16).is_ok());
    assert_eq!(read_within(&honest, 64).err().unwrap().why, "it is too large");
}

#[test]
fn every_status_has_helms_name_and_others_are_unknown() {
    for status in ReleaseStatus::ALL {
        assert_eq!(ReleaseStatus::parse(status.name()), status);
    }
    assert_eq!(ReleaseStatus::parse("pending-miracle"), ReleaseStatus::Unknown);
    assert!(read_release(&[compressed(1, "uninstalling", "")]).unwrap().unwrap().is_installed(), "RF-215");
    assert!(!read_release(&[compressed(1, "uninstalled", "")]).unwrap().unwrap().is_installed(), "RF-89");
}
