//! The accounts of the cloud, as its front sees them.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use cloudberth_core::{Random, Tick};
use http::{HeaderValue, Method, header};
use serde_json::Value;
use sim_kit::{Incoming, Reply, RestCloud};

use crate::{
    control,
    paging::Query,
    refusal::Refusal,
    route::Route,
    settings::SimSettings,
    switches::Switches,
    tokens::{Access, Tokens},
    world::{self, Call, Moment, World},
};

/// What a gateway shows.
const PAGE: &str =
    "<html><head><title>Gateway</title></head><body><h1>Please try again later</h1></body></html>\n";

/// Our account, another one, and which token opens which.
#[derive(Debug)]
pub struct Accounts {
    pub(crate) world: World,
    /// Another account, for requests with a token of it.
    pub(crate) elsewhere: World,
    pub(crate) tokens: Tokens,
    random: Arc<Random>,
    /// The latest requests, as far as the rate limit looks back.
    recent: VecDeque<Tick>,
}

fn route(request: &Incoming) -> Option<Route> {
    Route::parse(&request.method, &request.path)
}

impl Accounts {
    pub(crate) fn new(settings: SimSettings, random: Arc<Random>, at: Moment) -> Self {
        let (world, elsewhere) = Self::begin(settings, &random, at);
        Self { world, elsewhere, tokens: Tokens::default(), random, recent: VecDeque::new() }
    }

    fn begin(settings: SimSettings, random: &Arc<Random>, at: Moment) -> (World, World) {
        let other = SimSettings { instances: 0, ..settings.clone() };
        (World::new(settings, Arc::clone(random), 0, at), World::new(other, Arc::clone(random), 1, at))
    }

    /// Both accounts are in one cloud.
    pub(crate) fn set_switches(&mut self, switches: &Switches) {
        self.world.settings.switches.clone_from(switches);
        self.elsewhere.settings.switches.clone_from(switches);
    }

    fn carry_out(&mut self, request: &Incoming, at: Moment) -> Result<world::Reply, Refusal> {
        let route = route(request);
        let open = route.is_some_and(Route::is_open).then_some(Access::Own);
        let access = self.tokens.check(request.header("authorization")).or(open);
        let access = access.ok_or(Refusal::empty(401))?;
        let route = route.ok_or(Refusal::empty(404))?;
        let query = Query::parse(request.query.as_deref());
        let call = Call { route, query: &query, body: &request.body, base: &request.base, at };
        let world = if access == Access::OtherAccount { &mut self.elsewhere } else { &mut self.world };
        world.handle(call)
    }

    /// For how many seconds a request comes too early, if it does.
    fn exceeds_rate(&mut self, now: Tick) -> Option<u64> {
        let limit = self.world.settings.rate_limit?;
        self.recent.retain(|at| now.since(*at) < limit.within);
        if self.recent.len() < limit.requests {
            self.recent.push_back(now);
            return None;
        }
        let free =
            self.recent.front().map_or(limit.within, |first| limit.within.saturating_sub(now.since(*first)));
        Some(free.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX))
    }

    /// Every answer tells the version of the API.
    fn told(&self, status: u16, body: Option<Value>) -> Reply {
        let mut reply = Reply::new(status, body);
        if let Ok(version) = HeaderValue::from_str(&self.world.settings.version()) {
            reply.headers.insert("x-spec-version", version);
        }
        reply
    }
}

/// A refusal that was ordered, each as it comes in the field.
fn ordered(status: u16) -> Refusal {
    let text = |text: &str| Refusal { status, body: Some(Value::from(text)) };
    match status {
        400 => text("Bad Request"),
        401 => Refusal::empty(status),
        404 => Refusal::not_found(),
        429 => text("Too Many Requests"),
        502..=504 => text(PAGE),
        _ => Refusal::problem(status, "The cloud was told to fail this request."),
    }
}

impl RestCloud for Accounts {
    fn operation(&self, request: &Incoming) -> String {
        route(request).map_or_else(|| "unknown".to_owned(), |route| route.operation(&request.body))
    }

    /// Asking whether a server runs is a POST, and changes nothing.
    fn mutates(&self, request: &Incoming) -> bool {
        !matches!(request.method, Method::GET | Method::HEAD | Method::OPTIONS)
            && self.operation(request) != "servers.is_running"
    }

    fn latency(&self) -> (Duration, f64) {
        (self.world.settings.latency, self.world.settings.jitter)
    }

    /// A change of a VPC may take effect later than others.
    fn queue(&mut self, request: &Incoming, _: Tick, _: Duration) -> Duration {
        let changes_vpc = route(request).is_some_and(Route::changes_vpc);
        if changes_vpc { self.world.settings.switches.vpc_delay } else { Duration::ZERO }
    }

    fn handle(&mut self, request: &Incoming, at: Moment) -> Reply {
        if let Some(seconds) = self.exceeds_rate(at.tick) {
            let mut reply = self.refuse(request, 429);
            reply.headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            return reply;
        }
        match self.carry_out(request, at) {
            Ok(world::Reply { status, body }) | Err(Refusal { status, body }) => self.told(status, body),
        }
    }

    fn refuse(&self, _: &Incoming, status: u16) -> Reply {
        let Refusal { status, body } = ordered(status);
        self.told(status, body)
    }

    /// Descriptions of problems have a media type of their own; some refusals are no JSON at all.
    fn write_refusal(&self, _: u16, body: &Value) -> (&'static str, String) {
        match body {
            Value::String(page) if page.starts_with('<') => ("text/html", page.clone()),
            Value::String(text) => ("text/plain", text.clone()),
            problem => ("application/problem+json", problem.to_string()),
        }
    }

    /// The count of all items stays what it is.
    fn items<'a>(&self, _: &Incoming, body: &'a mut Value) -> Option<&'a mut Vec<Value>> {
        let list = body.as_object_mut().filter(|body| body.contains_key("meta"))?;
        list.values_mut().find_map(Value::as_array_mut)
    }

    fn control(&mut self, order: &str, body: &[u8], _: Moment) -> Option<Result<Value, String>> {
        control::answer(self, order, body)
    }

    fn state(&mut self, _: &str, at: Moment) -> Value {
        self.world.advance(at.tick);
        control::show(&self.world)
    }

    /// Tokens, settings and switches stay.
    fn reset(&mut self, at: Moment) {
        let settings = self.world.settings.clone();
        (self.world, self.elsewhere) = Self::begin(settings, &self.random, at);
        self.recent.clear();
    }
}
