//! `cloudberth lint`.

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, ValueEnum};
use cloudberth_manager::lint::{self, LintOptions};

use crate::CLOUDS;

/// Says which Services in a file would be refused, and why, without a cluster and without a cloud: exit code 0 for nothing
/// refused, 1 for refusals, 2 for a wrong call or where it does not say which cloud is meant, 3 if something could not be
/// read.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A file with manifests, in YAML or JSON, several documents and Lists included; - reads standard input. May be given
    /// again.
    #[arg(short = 'f', long = "filename", required = true, value_name = "FILE")]
    files: Vec<String>,
    /// The cloud, or several separated by commas. Without it, each Service is looked at for the clouds whose annotations it
    /// carries.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    cloud_provider: Vec<String>,
    /// The configuration file of that cloud, where the deployment has one. Environment variables count as well; tokens are
    /// not needed and not used.
    #[arg(long, value_name = "FILE")]
    cloud_config: Option<PathBuf>,
    /// The cluster's name.
    #[arg(long, default_value = "kubernetes", value_name = "NAME")]
    cluster_name: String,
    /// How to print what was found.
    #[arg(long, default_value = "text")]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// Lints as it was called.
pub fn run(arguments: Arguments) -> ExitCode {
    let options = LintOptions {
        files: arguments.files,
        providers: arguments.cloud_provider,
        config: arguments.cloud_config,
        cluster: arguments.cluster_name,
        json: arguments.output == Output::Json,
    };
    lint::run(&options, CLOUDS)
}
