//! A real Chromium, spoken to over two pipes in its own protocol (`--remote-debugging-pipe`): JSON objects with a zero byte
//! after each. It needs no driver, no port and no library, and a browser whose pipe ends closes by itself.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, ErrorKind, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take on the busiest of instances: it ends a hang and measures nothing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);
/// Between two looks at the page.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A browser with one window. Dropped, it ends and leaves nothing behind.
pub(crate) struct Browser {
    child: Child,
    to: File,
    from: Receiver<Value>,
    calls: u64,
    session: Option<String>,
    /// What the page wrote to the console, or the browser about the page, as an error or a warning.
    pub(crate) complaints: Vec<String>,
    place: TempDir,
}

/// The program: the one that `CLOUDBERTH_CHROMIUM` names, or one of the usual names in `PATH`.
fn program() -> PathBuf {
    if let Some(given) = std::env::var_os("CLOUDBERTH_CHROMIUM").filter(|given| !given.is_empty()) {
        return given.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<_> = std::env::split_paths(&path).collect();
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let found = names.iter().flat_map(|name| places.iter().map(move |place| place.join(name)));
    found.into_iter().find(|file| file.is_file()).expect(
        "there is no Chromium in PATH: `cargo xtask page` gets one and runs these tests, or name one in CLOUDBERTH_CHROMIUM",
    )
}

impl Browser {
    pub(crate) fn start() -> Self {
        let place = tempfile::tempdir().unwrap();
        let [to, from] = ["to", "from"].map(|name| place.path().join(name));
        assert!(Command::new("mkfifo").args([&to, &from]).status().unwrap().success());
        let log = File::create(place.path().join("log")).unwrap();
        let mut command = Command::new("sh");
        // It reads from 3 and writes to 4. Each end of a pipe waits for the other one to be opened, in this order.
        command
            .args(["-c", "to=$1; from=$2; shift 2; exec \"$@\" 3<\"$to\" 4>\"$from\"", "sh"])
            .args([&to, &from]);
        command.arg(program()).args([
            "--headless",
            "--remote-debugging-pipe",
            "--no-first-run",
            "--disable-gpu",
        ]);
        command.args(["--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking"]);
        // Its own walls need rights that root in a container does not have.
        command
            .arg("--no-sandbox")
            .arg(format!("--user-data-dir={}", place.path().join("profile").display()));
        command.arg("about:blank").stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        // Some builds leave files in the temporary directory; this one goes with the browser.
        let child = command.env("TMPDIR", place.path()).spawn().unwrap();
        let to = File::options().write(true).open(&to).unwrap();
        let from = listen(File::open(&from).unwrap());
        let mut browser = Self { child, to, from, calls: 0, session: None, complaints: Vec::new(), place };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attached =
            browser.call("Target.attachToTarget", &json!({"targetId": target["targetId"], "flatten": true}));
        browser.session = attached["sessionId"].as_str().map(ToOwned::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, &json!({}));
        }
        browser.size(1440, 900);
        browser
    }

    /// Calls a method and waits for its answer, which must not be an error.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.try_call(method, params).unwrap_or_else(|why| panic!("{method}: {why}"))
    }

    fn try_call(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to
            .write_all(format!("{message}\0").as_bytes())
            .unwrap_or_else(|why| self.ended(&why.to_string()));
        loop {
            let heard = match self.from.recv_timeout(PATIENCE) {
                Ok(heard) => heard,
                Err(RecvTimeoutError::Timeout) => self.ended(&format!("no answer to {method}")),
                Err(RecvTimeoutError::Disconnected) => self.ended("it closed its pipe"),
            };
            if heard["id"] == self.calls {
                return heard
                    .get("error")
                    .map_or_else(|| Ok(heard["result"].clone()), |why| Err(why.clone()));
            }
            self.complaints.extend(complaint(&heard));
        }
    }

    fn ended(&self, why: &str) -> ! {
        let log = fs::read_to_string(self.place.path().join("log")).unwrap_or_default();
        panic!("the browser does not answer: {why}\n{log}")
    }

    /// Opens the link of a page and waits until it has led to the page itself.
    pub(crate) fn open(&mut self, url: &str) {
        let answer = self.call("Page.navigate", &json!({"url": url}));
        assert!(answer.get("errorText").is_none(), "{url}: {answer}");
        self.until("the page is loaded", "document.readyState === 'complete' && location.search === ''");
    }

    /// What a script in the page evaluates to; promises are waited for.
    pub(crate) fn eval(&mut self, script: &str) -> Value {
        let params =
            json!({"expression": script, "awaitPromise": true, "returnByValue": true, "userGesture": true});
        let answer = self.call("Runtime.evaluate", &params);
        assert!(answer.get("exceptionDetails").is_none(), "{script}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until a script is true of the page.
    pub(crate) fn until(&mut self, what: &str, script: &str) -> Value {
        let mut waited = Duration::ZERO;
        loop {
            let params = json!({"expression": script, "awaitPromise": true, "returnByValue": true});
            // A page that is just being left has no answer.
            let answer = self.try_call("Runtime.evaluate", &params).unwrap_or_default();
            let value = answer["result"]["value"].clone();
            if !matches!(value, Value::Null | Value::Bool(false)) {
                return value;
            }
            if waited >= PATIENCE {
                let page = self.eval("document.body.innerText");
                let picture = self.shot("failed");
                panic!("not seen: {what}\n{}\n{}", page.as_str().unwrap_or_default(), picture.display());
            }
            thread::sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
    }

    /// Clicks where a person would, and finds it a mistake if something else is there.
    pub(crate) fn click(&mut self, selector: &str) {
        let quoted = json!(selector);
        let found = self.until(
            &format!("{selector} can be clicked"),
            &format!(
                "(() => {{ const e = document.querySelector({quoted}); if (!e) return null;
                   e.scrollIntoView({{block: 'nearest'}}); const b = e.getBoundingClientRect();
                   const [x, y] = [b.left + b.width / 2, b.top + b.height / 2];
                   return e.contains(document.elementFromPoint(x, y)) ? [x, y] : null; }})()"
            ),
        );
        for kind in ["mousePressed", "mouseReleased"] {
            let params =
                json!({"type": kind, "x": found[0], "y": found[1], "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", &params);
        }
    }

    /// Presses a key and lets it go: `Tab`, `Enter`, `ArrowRight`, `Escape`, or a letter.
    pub(crate) fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" | "Shift+Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            "ArrowLeft" => (37, ""),
            "ArrowUp" => (38, ""),
            "ArrowRight" => (39, ""),
            "ArrowDown" => (40, ""),
            letter => (u32::from(letter.to_ascii_uppercase().as_bytes()[0]), letter),
        };
        let (name, shift) = key.strip_prefix("Shift+").map_or((key, 0), |name| (name, 8));
        let params = json!({
            "key": name, "windowsVirtualKeyCode": code, "modifiers": shift, "text": text,
            "type": if text.is_empty() { "rawKeyDown" } else { "keyDown" },
        });
        self.call("Input.dispatchKeyEvent", &params);
        let params = json!({"type": "keyUp", "key": name, "windowsVirtualKeyCode": code, "modifiers": shift});
        self.call("Input.dispatchKeyEvent", &params);
    }

    /// Presses Tab until an element that fits has the focus, as a person would who looks where it is.
    pub(crate) fn tab_to(&mut self, selector: &str) {
        for _ in 0..60 {
            if self.eval(&format!("document.activeElement.matches({})", json!(selector))) == true {
                let seen = self.eval("getComputedStyle(document.activeElement).outlineStyle");
                assert_eq!(seen, "solid", "one can see that {selector} has the focus");
                return;
            }
            self.press("Tab");
        }
        panic!("{selector} cannot be reached with Tab");
    }

    pub(crate) fn size(&mut self, width: u32, height: u32) {
        let params = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &params);
    }

    /// What the person likes: `prefers-color-scheme`, `prefers-reduced-motion`.
    pub(crate) fn prefers(&mut self, feature: &str, value: &str) {
        self.call("Emulation.setEmulatedMedia", &json!({"features": [{"name": feature, "value": value}]}));
    }

    /// Keeps a picture of the window under `target/tmp/page`.
    pub(crate) fn shot(&mut self, name: &str) -> PathBuf {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
        fs::create_dir_all(&dir).unwrap();
        let file = dir.join(format!("{name}.png"));
        let taken = self.call("Page.captureScreenshot", &json!({"format": "png"}));
        fs::write(&file, base64(taken["data"].as_str().unwrap())).unwrap();
        file
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.to.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let mut patience = 200;
        while patience > 0 && matches!(self.child.try_wait(), Ok(None)) {
            thread::sleep(LOOK_EVERY);
            patience -= 1;
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Its helpers end a little later, and write until then.
        while patience > 0
            && fs::remove_dir_all(self.place.path()).is_err_and(|why| why.kind() != ErrorKind::NotFound)
        {
            thread::sleep(LOOK_EVERY);
            patience -= 1;
        }
    }
}

fn listen(pipe: File) -> Receiver<Value> {
    let (send, receive) = channel();
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut raw = Vec::new();
        while pipe.read_until(0, &mut raw).is_ok_and(|read| read > 0) {
            let message = serde_json::from_slice(raw.strip_suffix(&[0]).unwrap_or(&raw));
            raw.clear();
            if !message.is_ok_and(|message| send.send(message).is_ok()) {
                return;
            }
        }
    });
    receive
}

/// What a person would see in red or yellow in the console.
fn complaint(heard: &Value) -> Option<String> {
    let params = &heard["params"];
    let bad = |level: &Value| ["error", "warning", "assert"].iter().any(|bad| level == bad);
    match heard["method"].as_str()? {
        "Runtime.exceptionThrown" => Some(params.to_string()),
        "Runtime.consoleAPICalled" => bad(&params["type"]).then(|| params.to_string()),
        "Log.entryAdded" => bad(&params["entry"]["level"]).then(|| params.to_string()),
        _ => None,
    }
}

fn base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u32> = text.bytes().filter(|byte| *byte != b'=').map(value).collect();
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for group in digits.chunks(4) {
        let bits = group.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * (4 - group.len()));
        bytes.extend(&bits.to_be_bytes()[1..group.len()]);
    }
    bytes
}
