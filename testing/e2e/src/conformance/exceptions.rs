//! The differences that are there by design, each with its reason.
//!
//! The list is short on purpose: a difference that could matter to a client is fixed, not listed. Apart from these,
//! [`super::differences`] ignores only values that differ between any two servers, and `managedFields`, which the
//! embedded API does not keep.

use super::compare::Difference;

/// One field of one row that is meant to differ.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// The row's id.
    pub row: &'static str,
    /// The numbers of the steps, from 1.
    pub steps: &'static [usize],
    /// The field, as a JSON pointer into the answer.
    pub path: &'static str,
    /// Why the embedded API is to be different there.
    pub why: &'static str,
}

/// All of them.
pub const EXCEPTIONS: &[Exception] = &[
    Exception {
        row: "service-rules-12",
        steps: &[4, 5],
        path: "/body/metadata/resourceVersion",
        why: "the patch changes nothing but managedFields, which are not kept, so there is no new version",
    },
    Exception {
        row: "errors-3",
        steps: &[3],
        path: "/body/message",
        why: "answers are JSON or YAML, never protobuf, and the refusal says so",
    },
];

impl Exception {
    /// Whether a difference is this one.
    pub fn covers(&self, difference: &Difference) -> bool {
        let id = difference.row.split(' ').next().unwrap_or_default();
        let number = difference.step.split('.').next().and_then(|number| number.parse().ok());
        id == self.row
            && number.is_some_and(|number| self.steps.contains(&number))
            && difference.path == self.path
    }
}

/// Differences that none of the exceptions covers, and those that one does.
pub fn sift(differences: Vec<Difference>, exceptions: &[Exception]) -> (Vec<Difference>, Vec<Difference>) {
    differences.into_iter().partition(|found| !exceptions.iter().any(|exception| exception.covers(found)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(row: &str, step: &str, path: &str) -> Difference {
        Difference { row: row.into(), step: step.into(), path: path.into(), real: None, embedded: None }
    }

    #[test]
    fn an_exception_covers_one_field_of_one_row() {
        let table = [
            ("errors-3 \"content types\"", "3. GET /x", "/body/message", true),
            ("errors-3 \"content types\"", "1. GET /x", "/body/message", false),
            ("errors-3 \"content types\"", "3. GET /x", "/status", false),
            ("errors-31 \"another\"", "3. GET /x", "/body/message", false),
        ];
        for (row, step, path, covered) in table {
            let (unexpected, by_design) = sift(vec![difference(row, step, path)], EXCEPTIONS);
            assert_eq!(
                (unexpected.len(), by_design.len()),
                if covered { (0, 1) } else { (1, 0) },
                "{row} {step} {path}"
            );
        }
    }

    #[test]
    fn they_stay_few() {
        assert!(EXCEPTIONS.len() < 10);
        assert!(EXCEPTIONS.iter().all(|exception| !exception.why.is_empty() && !exception.steps.is_empty()));
    }
}
