//! A real browser, told what to do by the `WebDriver` protocol.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// What an element is called in the protocol.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// The program that starts browsers, if one is named.
pub(crate) fn chromedriver() -> Option<PathBuf> {
    let named = std::env::var_os("ADAPARAM_CHROMEDRIVER");
    if named.is_none() {
        eprintln!("SKIPPED: ADAPARAM_CHROMEDRIVER names no chromedriver; .ci/browser installs one");
    }
    named.map(PathBuf::from)
}

/// A browser with one window, in a folder of its own, until it is dropped.
pub(crate) struct Browser {
    driver: Child,
    session: String,
    agent: ureq::Agent,
    profile: tempfile::TempDir,
}

/// An element of a page.
#[derive(Clone)]
pub(crate) struct Element(String);

impl Browser {
    /// A window of this size.
    pub(crate) fn start(driver: &Path, [width, height]: [u32; 2]) -> Self {
        let mut driver = Command::new(driver)
            .args(["--port=0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts");
        let port = port(&mut driver);
        let profile = tempfile::tempdir().unwrap();
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_mins(1)))
            .build();
        let mut browser = Self {
            driver,
            session: format!("http://127.0.0.1:{port}/session"),
            agent: config.into(),
            profile,
        };
        let folder = browser.profile.path().display().to_string();
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--force-device-scale-factor=1",
            &format!("--window-size={width},{height}"),
            &format!("--user-data-dir={folder}"),
        ];
        let answer = browser.post(
            "",
            &json!({"capabilities": {"alwaysMatch": {
                "goog:chromeOptions": {"args": arguments},
                "goog:loggingPrefs": {"browser": "ALL"},
            }}}),
        );
        let id = answer["sessionId"].as_str().expect("a session").to_owned();
        browser.session = format!("{}/{id}", browser.session);
        // A phone is narrower than the least window; the page must see the size itself.
        browser.tell(
            "Emulation.setDeviceMetricsOverride",
            &json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}),
        );
        browser
    }

    fn post(&self, path: &str, value: &Value) -> Value {
        self.asked(path, value)
            .unwrap_or_else(|refusal| panic!("{path}: {}", refusal["message"]))
    }

    /// What the driver answers, or its refusal: `error` by the protocol's names, and a message.
    fn asked(&self, path: &str, value: &Value) -> Result<Value, Value> {
        let url = format!("{}{path}", self.session);
        let mut answer = self
            .agent
            .post(&url)
            .header("Content-Type", "application/json")
            .send(value.to_string())
            .unwrap_or_else(|error| panic!("{url}: {error}"));
        let text = answer
            .body_mut()
            .with_config()
            .limit(64 << 20)
            .read_to_string()
            .unwrap();
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{url}: {text}"));
        let answer = value["value"].clone();
        match answer["error"] {
            Value::Null => Ok(answer),
            _ => Err(answer),
        }
    }

    /// Does something to the first element of a selector. A page that makes its elements anew may do so between the
    /// finding and the doing, which a person's finger does not notice: then the new one is taken.
    fn act_on(&self, selector: &str, action: &str, value: &Value) {
        self.wait_for(&format!("{action} of {selector}"), || {
            let Element(id) = self.find(selector);
            match self.asked(&format!("/element/{id}/{action}"), value) {
                Ok(_) => Some(()),
                Err(refusal) if refusal["error"] == "stale element reference" => None,
                Err(refusal) => panic!("{action} of {selector}: {}", refusal["message"]),
            }
        });
    }

    /// A command of the browser's own protocol.
    fn tell(&self, command: &str, parameters: &Value) -> Value {
        self.post(
            "/goog/cdp/execute",
            &json!({"cmd": command, "params": parameters}),
        )
    }

    /// Light or dark, as a reader has it.
    pub(crate) fn prefer(&self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.tell("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    pub(crate) fn open(&self, url: &str) {
        self.post("/url", &json!({"url": url}));
    }

    /// What a script gives.
    pub(crate) fn script(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({"script": script, "args": []}))
    }

    /// The first element of a selector, which must be there soon.
    pub(crate) fn find(&self, selector: &str) -> Element {
        self.wait_for(&format!("an element {selector}"), || {
            let quoted = json!(selector);
            let found = self.script(&format!("return document.querySelector({quoted})"));
            found[ELEMENT].as_str().map(|id| Element(id.to_owned()))
        })
    }

    /// Clicks as a person does: where something else lies over the element, that is an error.
    pub(crate) fn click(&self, selector: &str) {
        self.act_on(selector, "click", &json!({}));
    }

    /// Types into an element.
    pub(crate) fn type_into(&self, selector: &str, keys: &str) {
        self.act_on(selector, "value", &json!({"text": keys}));
    }

    /// Presses a key where the focus is, perhaps while another is held.
    pub(crate) fn press(&self, held: Option<char>, key: char) {
        let action = |kind: &str, key: char| json!({"type": kind, "value": key.to_string()});
        let mut actions = vec![action("keyDown", key), action("keyUp", key)];
        if let Some(held) = held {
            actions.insert(0, action("keyDown", held));
            actions.push(action("keyUp", held));
        }
        self.post(
            "/actions",
            &json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}),
        );
    }

    /// Chooses an option, as a person does.
    pub(crate) fn choose(&self, selector: &str, value: &str) {
        self.find(selector);
        let (selector, value) = (json!(selector), json!(value));
        self.script(&format!(
            "const select = document.querySelector({selector}); select.value = {value}; \
             if (select.value !== {value}) throw new Error('no such option'); \
             select.dispatchEvent(new Event('change', {{bubbles: true}}))"
        ));
    }

    /// What `look` finds, once it does.
    // It reads as what a person does with a browser.
    #[allow(clippy::unused_self)]
    pub(crate) fn wait_for<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let patience = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(Instant::now() < patience, "there is no {what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Errors that the page has written to the browser's console since the last look.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let log = self.post("/se/log", &json!({"type": "browser"}));
        let entries = log.as_array().cloned().unwrap_or_default();
        let is_bad = |entry: &&Value| entry["level"] == "SEVERE";
        let told = entries
            .iter()
            .filter(is_bad)
            .map(|entry| entry["message"].to_string());
        told.collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.agent.delete(&self.session).call();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// The port that the driver has chosen: it says so in its first lines.
fn port(driver: &mut Child) -> u16 {
    let out = driver.stdout.take().expect("its output");
    let mut lines = BufReader::new(out).lines().map_while(Result::ok);
    let told = lines.find_map(|line| {
        let (_, port) = line.split_once("started successfully on port ")?;
        port.trim_end_matches('.').parse().ok()
    });
    // What it says later must go somewhere.
    std::thread::spawn(move || lines.for_each(drop));
    told.expect("chromedriver tells its port")
}
