//! The metrics of the process, read from `/proc` at each scrape. What cannot be read is left out.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use cloudberth_core::metric::{Metric, MetricKind};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeGaugeValue},
    metrics::MetricType,
};

use super::table;

/// Ticks per second in which the kernel tells times to programs, on every processor that it runs on.
const TICKS: f64 = 100.0;

#[derive(Debug)]
pub(super) struct Process {
    root: PathBuf,
}

impl Default for Process {
    fn default() -> Self {
        Self { root: "/proc".into() }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut tell = |metric: &Metric, value: &dyn Fn(&Path) -> Option<f64>| {
            value(&self.root).map_or(Ok(()), |value| put(&mut encoder, metric, &value))
        };
        tell(&table::CPU_SECONDS, &cpu_seconds)?;
        tell(&table::OPEN_FILES, &open_files)?;
        tell(&table::RESIDENT_MEMORY, &resident)?;
        tell(&table::START_TIME, &started)
    }
}

fn put(encoder: &mut DescriptorEncoder<'_>, metric: &Metric, value: &impl EncodeGaugeValue) -> fmt::Result {
    let kind = match metric.kind {
        MetricKind::Counter => MetricType::Counter,
        MetricKind::Gauge => MetricType::Gauge,
        MetricKind::Histogram => MetricType::Histogram,
    };
    let help = format!("{}.", metric.help());
    encoder.encode_descriptor(metric.name, &help, None, kind)?.encode_gauge(value)
}

fn cpu_seconds(root: &Path) -> Option<f64> {
    Some((stat(root, 11)? + stat(root, 12)?) / TICKS)
}

fn started(root: &Path) -> Option<f64> {
    Some(number_after(&root.join("stat"), "btime ")? + stat(root, 19)? / TICKS)
}

fn resident(root: &Path) -> Option<f64> {
    Some(number_after(&root.join("self/status"), "VmRSS:")? * 1024.0)
}

fn open_files(root: &Path) -> Option<f64> {
    let entries = std::fs::read_dir(root.join("self/fd")).ok()?.count();
    // Looking costs one.
    Some(f64::from(u32::try_from(entries.saturating_sub(1)).ok()?))
}

/// A field of the status line, counted from the one after the program's name, which may hold spaces and brackets.
fn stat(root: &Path, field: usize) -> Option<f64> {
    let text = std::fs::read_to_string(root.join("self/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(field)?.parse().ok()
}

/// The number after `label` at the beginning of a line.
fn number_after(file: &Path, label: &str) -> Option<f64> {
    let text = std::fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix(label))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Registry, render};

    fn page(root: &Path) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Process { root: root.to_owned() }));
        render(&registry)
    }

    #[test]
    fn what_the_system_tells_is_on_the_page() {
        let root = std::env::temp_dir().join(format!("cloudberth-proc-{}", std::process::id()));
        std::fs::create_dir_all(root.join("self/fd")).unwrap();
        let stat = "42 (a (very) odd name) S 1 1 1 0 -1 4 100 0 0 0 250 150 0 0 20 0 1 0 700 9 9\n";
        let files = [
            ("self/stat", stat),
            ("self/status", "Name:\tx\nVmRSS:\t   20 kB\n"),
            ("stat", "cpu 1 2\nbtime 1700000000\n"),
            ("self/fd/0", ""),
            ("self/fd/1", ""),
            ("self/fd/9", ""),
        ];
        for (name, text) in files {
            std::fs::write(root.join(name), text).unwrap();
        }
        let page = page(&root);
        std::fs::remove_dir_all(&root).unwrap();
        let samples: Vec<_> = page.lines().filter(|line| !line.starts_with('#')).collect();
        let want = [
            "process_cpu_seconds_total 4.0",
            "process_open_fds 2.0",
            "process_resident_memory_bytes 20480.0",
            "process_start_time_seconds 1700000007.0",
        ];
        assert_eq!(samples, want);
        assert!(page.contains("# TYPE process_cpu_seconds_total counter\n"));
    }

    #[test]
    fn what_the_system_does_not_tell_is_left_out() {
        assert_eq!(page(Path::new("/nowhere")), "");
    }
}
