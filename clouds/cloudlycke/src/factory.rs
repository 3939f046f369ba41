//! The provider from its settings.

use std::{path::PathBuf, sync::Arc};

use cloudberth_core::{Error, Result};
use cloudberth_http::{NOWHERE, OpenResult, ProviderContext, ProviderFactory, TokenSource};

#[cfg(feature = "embedded")]
use crate::embedded::EmbeddedService;
use crate::{
    CloudlyckeProvider, FileSettings, Settings, Sources, Surroundings, TOKEN, annotations, id::SCHEME,
    reasons::REASONS, settings::Service,
};

/// Cloudlycke, as the program lists it.
pub const FACTORY: ProviderFactory = ProviderFactory {
    name: SCHEME,
    replaces: &["cloudlycke-cloud-controller-manager"],
    annotations: &annotations::TABLE,
    reasons: REASONS,
    rights: &[],
    offline: &[("CLOUDLYCKE_INVENTORY", ""), ("CLOUDLYCKE_API_URL", NOWHERE)],
    open,
};

fn open(ctx: &ProviderContext<'_>) -> OpenResult {
    let mut wrong: Vec<Error> = Vec::new();
    let file = ctx.read_config(FileSettings::read).map_err(|mistakes| wrong.extend(mistakes));
    let file = file.ok().flatten().unwrap_or_default();
    let token = token(ctx, &file);
    let sources = Sources { token, env: ctx.env, file, cluster: ctx.cluster_name };
    let settings = match Settings::read(sources) {
        Ok(settings) if wrong.is_empty() => settings,
        Ok(_) => return Err(wrong),
        Err(mistakes) => {
            wrong.extend(mistakes);
            return Err(wrong);
        }
    };
    ctx.notes.info(settings.to_string());
    match settings.service.clone() {
        Service::Remote => {
            let transport = ctx.transport(&settings.base).map_err(|why| vec![why])?;
            Ok(Arc::new(CloudlyckeProvider::new(settings, around(ctx, transport))))
        }
        Service::Embedded { inventory, state } => embedded(ctx, settings, inventory, state),
    }
}

fn around(ctx: &ProviderContext<'_>, transport: cloudberth_http::Transport) -> Surroundings {
    Surroundings {
        transport,
        clock: Arc::clone(&ctx.clock),
        random: Arc::clone(&ctx.random),
        observer: Arc::clone(&ctx.observer),
    }
}

#[cfg(feature = "embedded")]
fn embedded(
    ctx: &ProviderContext<'_>,
    settings: Settings,
    inventory: PathBuf,
    state: Option<PathBuf>,
) -> OpenResult {
    let service = EmbeddedService::new(inventory, state, ctx.env, Arc::clone(&ctx.clock));
    let service = service.map_err(|why| vec![why])?;
    let provider = CloudlyckeProvider::new(settings, around(ctx, service.transport()));
    Ok(Arc::new(provider.running(service)))
}

#[cfg(not(feature = "embedded"))]
fn embedded(_: &ProviderContext<'_>, _: Settings, _: PathBuf, _: Option<PathBuf>) -> OpenResult {
    let text = "CLOUDLYCKE_INVENTORY: this build has no Cloudlycke service in it; start one with: cloudberth lycke \
                serve --inventory FILE, and set CLOUDLYCKE_API_URL";
    Err(vec![Error::user_input(text)])
}

/// The token: that of the variable, else that of the file.
fn token(ctx: &ProviderContext<'_>, file: &FileSettings) -> Result<Option<TokenSource>> {
    if let Some(token) = ctx.token(TOKEN)? {
        return Ok(Some(token));
    }
    Ok(file.token.clone().map(TokenSource::fixed))
}
