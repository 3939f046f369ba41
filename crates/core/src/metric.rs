//! What a metric is called and what it means: every metric is declared once, with what the reference says about it.
//!
//! A crate declares its metrics with [`metrics!`](crate::metrics) and registers them by these constants;
//! `docs/reference/metrics.md` is written from the tables.

/// What a series of the metric is, in the words of the page that is scraped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A number that only grows.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// Counts of observations, by size.
    Histogram,
}

impl MetricKind {
    /// The word after `# TYPE`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// How much the name and the labels of a metric can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stability {
    /// It may change at any time.
    Alpha,
    /// It changes only with notice.
    Beta,
    /// The page does not say, as with the programs that we replace.
    Unmarked,
}

/// A row of a table of metrics.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// The name that a query uses. `{cloud}` stands for the name of a cloud.
    pub name: &'static str,
    /// What a series of it is.
    pub kind: MetricKind,
    /// How much it can be relied on.
    pub stability: Stability,
    /// The names of its labels, in the order in which they are printed.
    pub labels: &'static [&'static str],
    /// What it means, in one line without a full stop.
    pub meaning: &'static str,
}

impl Metric {
    /// The text after `# HELP`, without the full stop: the stability where it is marked, then the meaning.
    #[must_use]
    pub fn help(&self) -> String {
        match self.stability {
            Stability::Alpha => format!("[ALPHA] {}", self.meaning),
            Stability::Beta => format!("[BETA] {}", self.meaning),
            Stability::Unmarked => self.meaning.to_owned(),
        }
    }
}

/// Declares metrics as constants, and the table that holds all of them.
///
/// ```
/// cloudberth_core::metrics! {
///     /// The metrics of this part.
///     pub(crate) TABLE;
///
///     DOORS_OPEN = Alpha Gauge "doors_open" ["floor"], "Doors that are open";
/// }
/// assert_eq!(TABLE[0].help(), "[ALPHA] Doors that are open");
/// assert_eq!(DOORS_OPEN.labels, ["floor"]);
/// ```
#[macro_export]
macro_rules! metrics {
    (
        $(#[$about:meta])*
        $vis:vis $table:ident;
        $($metric:ident = $stability:ident $kind:ident $name:literal [$($label:literal),*], $meaning:literal;)*
    ) => {
        $(
            #[doc = concat!("`", $name, "`: ", $meaning, ".")]
            $vis const $metric: $crate::metric::Metric = $crate::metric::Metric {
                name: $name,
                kind: $crate::metric::MetricKind::$kind,
                stability: $crate::metric::Stability::$stability,
                labels: &[$($label),*],
                meaning: $meaning,
            };
        )*
        $(#[$about])*
        $vis const $table: &[$crate::metric::Metric] = &[$($metric),*];
    };
}
