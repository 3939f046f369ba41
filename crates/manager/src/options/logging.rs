//! Logging.

#![allow(missing_docs, reason = "plain data whose names say what it is")]

use super::checks::Checks;
use crate::{
    flags::{AnyFlag, Flags, Level},
    gates::{Gate, Gates},
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logging {
    pub format: LogFormat,
    pub level: Level,
    /// Other levels for parts of the program, the first match counts.
    pub modules: Vec<(String, Level)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

pub(super) fn logging(flags: &Flags, gates: &Gates, checks: &mut Checks) -> Logging {
    let format = format(flags, gates, checks);
    let modules = &flags.vmodule;
    if !modules.get().0.is_empty() && format != LogFormat::Text {
        checks.wrong(modules, "it can be used only with --logging-format=text");
    }
    // It has no effect; a value that was always refused is still refused.
    let _ = checks.period(&flags.log_flush_frequency);
    alpha_options(flags, gates, checks);
    Logging { format, level: *flags.v.get(), modules: modules.get().0.clone() }
}

fn format(flags: &Flags, gates: &Gates, checks: &mut Checks) -> LogFormat {
    let flag = &flags.logging_format;
    match flag.get().as_str() {
        "text" => {}
        "json" if gates.enabled(Gate::LoggingBetaOptions) => return LogFormat::Json,
        "json" => checks.wrong(flag, "it needs the feature gate LoggingBetaOptions"),
        _ => checks.wrong(flag, "it must be text or json"),
    }
    LogFormat::Text
}

fn alpha_options(flags: &Flags, gates: &Gates, checks: &mut Checks) {
    let sizes = [&flags.log_json_info_buffer_size, &flags.log_text_info_buffer_size];
    let streams = [&flags.log_json_split_stream, &flags.log_text_split_stream];
    let used = sizes.into_iter().filter(|size| size.get().bytes != 0).map(|flag| flag as &dyn AnyFlag);
    let split = streams.into_iter().filter(|stream| *stream.get()).map(|flag| flag as &dyn AnyFlag);
    for flag in used.chain(split).filter(|_| !gates.enabled(Gate::LoggingAlphaOptions)) {
        checks.wrong(flag, "it needs the feature gate LoggingAlphaOptions");
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::options, *};

    fn read(args: &[&str]) -> (Logging, Vec<String>) {
        let read = options(&[&["--cloud-provider=cloudscale"], args].concat());
        let texts = read.texts();
        (read.options.logging, texts)
    }

    #[test]
    fn format_level_and_modules_are_read() {
        assert_eq!(read(&[]).0, Logging { format: LogFormat::Text, level: Level(0), modules: vec![] });
        let (got, mistakes) = read(&["-v=4", "--vmodule=service=6"]);
        assert_eq!(mistakes, Vec::<String>::new());
        assert_eq!((got.level, got.modules), (Level(4), vec![("service".to_owned(), Level(6))]));
        assert_eq!(read(&["--logging-format=json"]).0.format, LogFormat::Json);
    }

    #[test]
    fn every_mistake_is_named() {
        let table: [(&[&str], &[&str]); 7] = [
            (&["--logging-format=xml"], &["--logging-format is \"xml\"; it must be text or json"]),
            (
                &["--logging-format=json", "--feature-gates=LoggingBetaOptions=false"],
                &["--logging-format is \"json\"; it needs the feature gate LoggingBetaOptions"],
            ),
            (
                &["--logging-format=json", "--vmodule=a=1"],
                &["--vmodule is \"a=1\"; it can be used only with --logging-format=text"],
            ),
            (&["--log-flush-frequency=0"], &["--log-flush-frequency is \"0s\"; it must be more than 0s"]),
            (
                &["--log-json-split-stream", "--log-text-info-buffer-size=64Ki"],
                &[
                    "--log-text-info-buffer-size is \"64Ki\"; it needs the feature gate LoggingAlphaOptions",
                    "--log-json-split-stream is \"true\"; it needs the feature gate LoggingAlphaOptions",
                ],
            ),
            (&["--log-json-split-stream", "--feature-gates=LoggingAlphaOptions=true"], &[]),
            (&["--log-json-info-buffer-size=0", "--log-text-split-stream=false"], &[]),
        ];
        for (args, want) in table {
            assert_eq!(read(args).1, want, "{args:?}");
        }
    }
}
