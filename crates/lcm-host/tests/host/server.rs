//! A server of HTTP answers written down beforehand, which keeps what it was asked.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use serde_json::Value;

/// What happens on one connection.
#[derive(Clone)]
pub(crate) enum Reply {
    /// These bytes, then the connection is closed.
    Raw(Vec<u8>),
    /// These bytes, then nothing until the client goes.
    Hang(Vec<u8>),
    /// One byte at a time with this pause.
    Slow(Vec<u8>, Duration),
}

/// One request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Method and path.
    pub(crate) line: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

pub(crate) struct Server {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// Connections that the client closed before their reply was over.
    gone: Arc<Mutex<u32>>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Server {
    /// Answers the n-th connection with the n-th reply, and all that follow with the last.
    pub(crate) fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let gone = Arc::<Mutex<u32>>::default();
        let (kept, lost) = (Arc::clone(&asked), Arc::clone(&gone));
        thread::spawn(move || {
            for (count, stream) in listener.incoming().enumerate() {
                let reply = replies.get(count).or(replies.last()).unwrap().clone();
                let (kept, lost) = (Arc::clone(&kept), Arc::clone(&lost));
                thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    kept.lock().unwrap().push(read(&stream));
                    if !answer(&mut stream, &reply) {
                        *lost.lock().unwrap() += 1;
                    }
                });
            }
        });
        Self { port, asked, gone }
    }

    /// Everything asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Waits until a client has closed its connection early.
    pub(crate) fn wait_until_gone(&self) {
        while *self.gone.lock().unwrap() == 0 {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A whole answer with a JSON body.
pub(crate) fn reply(status: u16, headers: &[&str], body: &Value) -> Reply {
    Reply::Raw(response(status, headers, &body.to_string()))
}

/// The bytes of an answer with this body.
pub(crate) fn response(status: u16, headers: &[&str], body: &str) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} Reason\r\ncontent-length: {}\r\n", body.len());
    for header in headers {
        text.push_str(&format!("{header}\r\n"));
    }
    format!("{text}connection: close\r\n\r\n{body}").into_bytes()
}

fn read(stream: &TcpStream) -> Asked {
    let mut reader = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    let first = line();
    let mut headers = Vec::new();
    loop {
        let header = line();
        let Some((name, value)) = header.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.unwrap().1.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    Asked { line: first, headers, body: serde_json::from_slice(&body).unwrap() }
}

/// False: the client went before it had everything.
fn answer(stream: &mut TcpStream, reply: &Reply) -> bool {
    match reply {
        // A client that has seen enough may close early.
        Reply::Raw(bytes) => stream.write_all(bytes).is_ok(),
        Reply::Slow(bytes, pause) => bytes.iter().all(|byte| {
            thread::sleep(*pause);
            stream.write_all(&[*byte]).is_ok()
        }),
        Reply::Hang(bytes) => {
            stream.write_all(bytes).unwrap();
            // Ends when the client closes.
            let _ = stream.read(&mut [0]);
            false
        }
    }
}
