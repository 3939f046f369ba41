//! In which order the tests that reach a mutant run, and how many at a time.

use std::time::Duration;

use super::survey::Test;

/// How long the tests of the first step take, about. Each step may take twice as long as the one before: the quickest tests
/// notice most mutants, and starting a program for each of the others would take longer than they do.
const FIRST: Duration = Duration::from_millis(500);

/// Tests of one program that run together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Batch<'t> {
    pub(crate) program: usize,
    pub(crate) names: Vec<&'t str>,
    /// How long they take one after the other.
    pub(crate) took: Duration,
}

/// The tests that reach a mutant, quickest first.
pub(crate) fn batches(tests: &[Test], number: usize) -> Vec<Batch<'_>> {
    let mut reaching: Vec<&Test> = tests.iter().filter(|test| test.reaches.contains(&number)).collect();
    reaching.sort_by_key(|test| test.took);
    let mut batches: Vec<Batch<'_>> = Vec::new();
    let (mut step, mut left, mut budget) = (0, FIRST, FIRST);
    for test in reaching {
        if test.took > left && step < batches.len() {
            budget *= 2;
            (step, left) = (batches.len(), budget);
        }
        left = left.saturating_sub(test.took);
        let here = batches.iter_mut().skip(step).find(|batch| batch.program == test.program);
        if let Some(batch) = here {
            batch.names.push(&test.name);
            batch.took += test.took;
        } else {
            batches.push(Batch { program: test.program, names: vec![&test.name], took: test.took });
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(program: usize, name: &str, millis: u64, reaches: &[usize]) -> Test {
        let reaches = reaches.iter().copied().collect();
        Test { program, name: name.to_owned(), took: Duration::from_millis(millis), reaches }
    }

    #[test]
    fn quick_tests_run_first_and_slower_ones_in_growing_steps() {
        let tests = [
            test(0, "slow", 5000, &[1, 2]),
            test(0, "a", 100, &[1]),
            test(1, "b", 150, &[1]),
            test(0, "c", 200, &[1, 3]),
            test(0, "other", 1, &[3]),
            test(1, "d", 300, &[1]),
            test(1, "e", 600, &[1]),
            test(1, "f", 700, &[1]),
        ];
        let rows = |number| {
            let batches = batches(&tests, number);
            batches
                .into_iter()
                .map(|batch| (batch.program, batch.names.join(" "), batch.took.as_millis()))
                .collect::<Vec<_>>()
        };
        let row = |program, names: &str, took| (program, names.to_owned(), took);
        assert_eq!(
            rows(1),
            [
                row(0, "a c", 300),
                row(1, "b", 150),
                row(1, "d e", 900),
                row(1, "f", 700),
                row(0, "slow", 5000)
            ]
        );
        assert_eq!(rows(2), [row(0, "slow", 5000)]);
        assert_eq!(rows(3), [row(0, "other c", 201)]);
        assert_eq!(rows(4), []);
    }
}
