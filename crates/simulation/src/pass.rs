//! One pass over one Service: open, a turn of the load-balancer loop, close.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use cloudberth_core::{
    Call, Error, Result, ServiceView,
    call::{Gate, Unguarded},
    decide::{
        nodeset::eligible::eligible,
        queue::{After, after},
        service::{
            lifecycle::{Closing, Opening, close, open},
            patch,
            roster::Roster,
        },
    },
    lb::{Backend, Creation, Goal, Intent, IntentMark, Permit, Publish, Scribe, Turn, Want},
    provider::{Boxed, LoadBalancers},
};
use cloudberth_runtime::trouble::translate;
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::program::{Broken, CLUSTER, Known, Program, lock, resource};

/// How long one pass may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A pass, and what it needs.
pub(crate) struct Pass<'a> {
    pub(crate) program: &'a Program,
    pub(crate) roster: &'a Roster,
    pub(crate) known: &'a Mutex<Known>,
}

/// The Service in its newest version that this pass knows, and the way to write on it.
struct Page<'a> {
    pass: &'a Pass<'a>,
    service: Mutex<Arc<ServiceView>>,
}

impl Pass<'_> {
    pub(crate) async fn run(&self, service: Arc<ServiceView>) -> After {
        let Some(balancers) = self.program.provider.load_balancers() else { return After::Forget };
        let page = Page { pass: self, service: Mutex::new(service) };
        match self.go(balancers, &page).await {
            Ok(after) => after,
            Err(error) => after(Err(&error)),
        }
    }

    async fn go(&self, balancers: &dyn LoadBalancers, page: &Page<'_>) -> Result<After> {
        let opening = open(self.roster, &page.newest(), self.intent(balancers, page));
        if let Opening::Prepare { provider, intent } = opening {
            page.prepare(provider, intent).await?;
        }
        let Some((_, goal, permit)) = opening.turn() else { return Ok(After::Forget) };
        let permit = if self.program.broken == Some(Broken::NoIntent) { Permit::Create } else { permit };
        let turn = self.turn(balancers, page, goal, permit).await;
        let closing = close(goal, permit, &turn, self.intent(balancers, page));
        match closing {
            Closing::RecordIntent => {
                page.prepare(self.program.provider.name(), true).await?;
                let turn = self.turn(balancers, page, goal, Permit::Create).await;
                let closing = close(goal, Permit::Create, &turn, self.intent(balancers, page));
                self.end(page, closing).await
            }
            closing => self.end(page, closing).await,
        }
    }

    /// What the Service's recorded intent allows.
    fn intent(&self, balancers: &dyn LoadBalancers, page: &Page<'_>) -> Intent {
        let now = self.program.clock.now();
        lock(self.known).intents.judge(&page.newest(), now, balancers.settle_time())
    }

    fn call(&self) -> Call {
        let yields = self.program.broken != Some(Broken::NeverYields);
        let election = Arc::clone(&self.program.election) as Arc<dyn Gate>;
        let gate = if yields { election } else { Arc::new(Unguarded) };
        Call::new(self.program.clock.now() + PATIENCE, gate)
    }

    async fn turn(&self, balancers: &dyn LoadBalancers, page: &Page<'_>, goal: Goal, permit: Permit) -> Turn {
        let call = self.call();
        let want = self.want(page, goal);
        let turn = match balancers.survey(&call).await {
            Ok(survey) => balancers.turn(&call, &survey, &want, permit, page).await,
            Err(error) => Turn::unknown(error),
        };
        if turn.creation != Creation::Nothing {
            lock(self.known).intents.touched(&want.service.key(), self.program.clock.now());
        }
        turn
    }

    fn want(&self, page: &Page<'_>, goal: Goal) -> Want {
        let known = lock(self.known);
        let fit = known.nodes.values().filter(|node| eligible(node));
        let backends = fit.map(|node| Backend { node: Arc::clone(node), local_endpoint: None }).collect();
        Want { service: page.newest(), cluster: CLUSTER.to_owned(), goal, backends, rivals: Vec::new() }
    }

    async fn end(&self, page: &Page<'_>, closing: Closing) -> Result<After> {
        match closing {
            Closing::Rest { clear_intent } => {
                page.write(patch::record(&page.newest(), &Publish::default(), clear_intent)).await?;
                Ok(After::Forget)
            }
            Closing::Wait { poll, clear_intent } => {
                page.write(patch::record(&page.newest(), &Publish::default(), clear_intent)).await?;
                Ok(After::Exactly(poll))
            }
            Closing::Hold { left } => Ok(After::Exactly(left)),
            Closing::Release => {
                let service = page.newest();
                page.write(patch::release(&service, &self.roster.standing(&service))).await?;
                Ok(After::Forget)
            }
            Closing::Retry { error, clear_intent } => {
                page.write(patch::record(&page.newest(), &Publish::default(), clear_intent)).await?;
                Err(error)
            }
            Closing::RecordIntent => Err(Error::permanent("internal error: an intent is asked for twice")),
        }
    }
}

impl Page<'_> {
    fn newest(&self) -> Arc<ServiceView> {
        Arc::clone(&lock(&self.service))
    }

    async fn prepare(&self, provider: &str, intent: bool) -> Result<()> {
        let now = intent.then(|| self.pass.program.clock.wall());
        self.write(patch::prepare(self.pass.roster, &self.newest(), provider, now)).await
    }

    /// Sends a patch of the status subresource, and takes the answer for the newest version.
    async fn write(&self, body: Option<Value>) -> Result<()> {
        let service = self.newest();
        let sloppy = || json!({"metadata": {"uid": service.uid}});
        let body = body.or_else(|| (self.pass.program.broken == Some(Broken::SecondPassWrites)).then(sloppy));
        let Some(body) = body else { return Ok(()) };
        let clock = &self.pass.program.clock;
        let until = self.pass.call().write_until(clock.now())?;
        self.remember(&service, &body);
        let client = self.pass.program.client.clone();
        let api: Api<DynamicObject> =
            Api::namespaced_with(client, &service.namespace, &resource("Service", "services"));
        let (params, patch) = (PatchParams::default(), Patch::Strategic(body));
        let answer = api.patch_subresource("status", &service.name, &params, &patch);
        let object = match tokio::time::timeout(until.since(clock.now()), answer).await {
            Ok(Ok(object)) => object,
            // An object that is gone needs nothing written.
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => return Ok(()),
            Ok(Err(error)) => return Err(translate(&error)),
            Err(_) => return Err(Error::temporary("the Kubernetes API did not answer in time")),
        };
        let json = serde_json::to_value(&object).map_err(|e| Error::permanent(e.to_string()))?;
        *lock(&self.service) = Arc::new(ServiceView::from_json(&json)?);
        Ok(())
    }

    /// Notes which annotations we write, before we do: the watch may be faster than the answer.
    fn remember(&self, service: &ServiceView, body: &Value) {
        let annotations = body.pointer("/metadata/annotations").and_then(Value::as_object);
        let mut known = lock(self.pass.known);
        let written = known.written.entry(service.key()).or_default();
        for (key, value) in annotations.into_iter().flatten() {
            written.insert(key.clone(), value.as_str().map(str::to_owned));
        }
    }
}

impl Scribe for Page<'_> {
    fn record<'a>(&'a self, publish: &'a Publish, intent: IntentMark) -> Boxed<'a, Result<()>> {
        Box::pin(self.write(patch::record(&self.newest(), publish, intent == IntentMark::Clear)))
    }
}
