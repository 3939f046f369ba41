//! The state of a release, read from the Secrets that Helm keeps about it.
//!
//! A record is, inside the Secret's own base64, base64 of gzip of JSON; very old ones are not compressed. It is inflated
//! while it is parsed, so that neither the chart in it nor a bomb takes memory.

use std::{
    fmt,
    io::{BufReader, Cursor, Read},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cloudberth_core::ObjectKey;
use flate2::bufread::MultiGzDecoder;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::values;

/// What gzip begins with.
const GZIP: [u8; 3] = [0x1f, 0x8b, 0x08];

/// A Secret holds at most 1 MiB, and honest charts shrink about ten times. More than this is not read.
const LARGEST: u64 = 64 << 20;

/// A release Secret, without what is of no use here. `Debug` shows nothing of the record.
#[derive(Clone, PartialEq, Eq)]
pub struct ReleaseRecord {
    /// The Secret.
    pub key: ObjectKey,
    /// Its UID.
    pub uid: String,
    /// Its version, so that only the record that was read is deleted.
    pub resource_version: String,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// The label `name`: the release.
    pub release: String,
    /// The label `version`: the revision.
    pub revision: String,
    /// The label `status`.
    pub status: String,
    /// The label `modifiedAt`: seconds since 1970, if Helm has changed it since.
    pub modified_at: String,
    /// `data.release` without the Secret's base64.
    pub data: Vec<u8>,
}

/// How the newest revision of a release is, in Helm's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseStatus {
    /// It is in place.
    Deployed,
    /// It was removed, and its history kept.
    Uninstalled,
    /// A later revision took its place.
    Superseded,
    /// Helm gave up on it.
    Failed,
    /// It is being removed.
    Uninstalling,
    /// It is being installed for the first time.
    PendingInstall,
    /// It is being changed.
    PendingUpgrade,
    /// It is being changed back.
    PendingRollback,
    /// Helm's own `unknown`, or a word that nobody here knows.
    Unknown,
}

impl ReleaseStatus {
    /// The status that Helm writes as `text`.
    pub fn parse(text: &str) -> Self {
        Self::ALL.into_iter().find(|status| status.name() == text).unwrap_or(Self::Unknown)
    }

    /// How Helm writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deployed => "deployed",
            Self::Uninstalled => "uninstalled",
            Self::Superseded => "superseded",
            Self::Failed => "failed",
            Self::Uninstalling => "uninstalling",
            Self::PendingInstall => "pending-install",
            Self::PendingUpgrade => "pending-upgrade",
            Self::PendingRollback => "pending-rollback",
            Self::Unknown => "unknown",
        }
    }

    /// Whether somebody is, or was, at work on it.
    pub const fn is_under_way(self) -> bool {
        matches!(
            self,
            Self::Uninstalling | Self::PendingInstall | Self::PendingUpgrade | Self::PendingRollback
        )
    }

    const ALL: [Self; 9] = [
        Self::Deployed,
        Self::Uninstalled,
        Self::Superseded,
        Self::Failed,
        Self::Uninstalling,
        Self::PendingInstall,
        Self::PendingUpgrade,
        Self::PendingRollback,
        Self::Unknown,
    ];
}

/// The newest revision of a release, and what came before it. `Debug` shows no values.
#[derive(Clone, PartialEq)]
pub struct ReleaseState {
    /// The newest revision.
    pub revision: u32,
    /// How it is.
    pub status: ReleaseStatus,
    /// The version of its chart.
    pub chart_version: String,
    /// When it was last touched, as far as its age matters: when a removal began, otherwise when the revision was made.
    pub updated: Option<Timestamp>,
    /// The fingerprint of the values that we applied last, whatever others did since.
    pub values_hash: Option<String>,
    /// The values that a user gave, ours or not.
    pub config: Value,
    /// All revisions, from the newest to the oldest.
    pub history: Vec<(u32, ReleaseStatus)>,
    /// The Secret of the newest revision.
    pub record: ObjectKey,
    /// Its UID.
    pub uid: String,
    /// Its version.
    pub resource_version: String,
}

impl ReleaseState {
    /// Whether the release is installed in the sense of the rule that no two balancers are: a history that was kept after
    /// a removal does not count, everything else does.
    pub fn is_installed(&self) -> bool {
        self.status != ReleaseStatus::Uninstalled
    }
}

/// A record that cannot be read. Nothing is known about its release then, and nothing may be done to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the Helm record {key} cannot be read: {why}; look at it, or delete it")]
pub struct BadRecord {
    /// The Secret.
    pub key: ObjectKey,
    /// What is wrong, without anything of its content.
    pub why: &'static str,
}

/// The state of the release whose Secrets these are: all those with the labels `owner=helm,name=<release>` in its
/// namespace, in any order. None is no release.
pub fn read_release(records: &[ReleaseRecord]) -> Result<Option<ReleaseState>, BadRecord> {
    let mut sorted = Vec::with_capacity(records.len());
    for record in records {
        let bad = |why| BadRecord { key: record.key.clone(), why };
        let revision: u32 =
            record.revision.parse().map_err(|_| bad("its label version is not a revision"))?;
        sorted.push((revision, record));
    }
    sorted.sort_by(|(a, _), (b, _)| b.cmp(a));
    let Some(&(revision, newest)) = sorted.first() else { return Ok(None) };
    let body = read(newest)?;
    let status =
        ReleaseStatus::parse(if body.info.status.is_empty() { &newest.status } else { &body.info.status });
    let values_hash = match values::hash_in(&body.info.description) {
        Some(hash) => Some(hash.to_owned()),
        None => earlier_hash(sorted.get(1..).unwrap_or_default()),
    };
    Ok(Some(ReleaseState {
        revision,
        status,
        updated: age_counts_from(status, &body.info, newest),
        chart_version: body.chart.metadata.version,
        values_hash,
        config: body.config,
        history: sorted
            .iter()
            .map(|(revision, record)| (*revision, ReleaseStatus::parse(&record.status)))
            .collect(),
        record: newest.key.clone(),
        uid: newest.uid.clone(),
        resource_version: newest.resource_version.clone(),
    }))
}

/// The newest fingerprint of ours below the newest revision. An old record that cannot be read does not matter.
fn earlier_hash(older: &[(u32, &ReleaseRecord)]) -> Option<String> {
    older.iter().find_map(|(_, record)| {
        let body = read(record).ok()?;
        values::hash_in(&body.info.description).map(str::to_owned)
    })
}

/// The first of several times that is one: Helm writes year 1, or nothing, where it has none.
fn age_counts_from(status: ReleaseStatus, info: &Info, record: &ReleaseRecord) -> Option<Timestamp> {
    let time = |text: &str| text.parse::<Timestamp>().ok().filter(|time| time.as_second() > 0);
    let modified =
        || record.modified_at.parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    let removal = || time(&info.deleted).or_else(modified);
    let removal = if status == ReleaseStatus::Uninstalling { removal() } else { None };
    removal.or_else(|| time(&info.last_deployed)).or(record.created)
}

/// What is used of a record; the rest is skipped while it is parsed.
#[derive(Deserialize)]
struct Body {
    info: Info,
    chart: Chart,
    #[serde(default)]
    config: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Info {
    status: String,
    description: String,
    last_deployed: String,
    deleted: String,
}

#[derive(Deserialize)]
struct Chart {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    version: String,
}

fn read(record: &ReleaseRecord) -> Result<Body, BadRecord> {
    read_within(record, LARGEST)
}

fn read_within(record: &ReleaseRecord, largest: u64) -> Result<Body, BadRecord> {
    let bad = |why| BadRecord { key: record.key.clone(), why };
    let bytes = STANDARD.decode(&record.data).map_err(|_| bad("it is not base64"))?;
    if bytes.starts_with(&GZIP) {
        let mut inflated = MultiGzDecoder::new(Cursor::new(bytes)).take(largest);
        let body = serde_json::from_reader(BufReader::new(&mut inflated));
        if inflated.limit() == 0 {
            return Err(bad("it is too large"));
        }
        body.map_err(|why| bad(if why.is_io() { "its compression is damaged" } else { "it is no release" }))
    } else {
        serde_json::from_slice(&bytes).map_err(|_| bad("it is no release"))
    }
}

impl fmt::Debug for ReleaseRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReleaseRecord")
            .field("key", &self.key)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ReleaseState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReleaseState")
            .field("revision", &self.revision)
            .field("status", &self.status)
            .field("chart_version", &self.chart_version)
            .field("updated", &self.updated)
            .field("history", &self.history)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
