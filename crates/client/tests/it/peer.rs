//! An agent on raw TCP: every byte and every pause of an answer is the test's own, and so is how it ends.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What follows the last piece of an answer.
#[derive(Clone, Copy)]
pub(crate) enum End {
    /// The end that HTTP has for it.
    Clean,
    /// The connection is closed without it.
    Cut,
    /// Nothing: the connection stays open until the client closes it.
    Silence,
}

pub(crate) struct Answer {
    pub(crate) head: String,
    pub(crate) pieces: Vec<Vec<u8>>,
    pub(crate) end: End,
}

impl Answer {
    /// A response with a body in chunks, one for each piece.
    pub(crate) fn new(content_type: &str, pieces: Vec<Vec<u8>>, end: End) -> Self {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        Self { head, pieces, end }
    }

    /// A response whose whole text is given.
    pub(crate) fn plain(text: &str) -> Self {
        Self { head: text.to_owned(), pieces: Vec::new(), end: End::Cut }
    }
}

pub(crate) struct Peer {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<String>>>,
    gone: watch::Receiver<usize>,
    _serving: JoinSet<()>,
}

impl Peer {
    /// Gives these answers, one per connection.
    pub(crate) async fn new(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let url = format!("http://{}/agent?x=1", listener.local_addr().expect("an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (left, gone) = watch::channel(0);
        let mut serving = JoinSet::new();
        let seen = Arc::clone(&asked);
        serving.spawn(async move {
            for answer in answers {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let request = request(&mut stream).await;
                seen.lock().expect("lock").push(request);
                give(&mut stream, &answer).await;
                drop(stream);
                left.send_modify(|count| *count += 1);
            }
        });
        Self { url, asked, gone, _serving: serving }
    }

    /// Head and body of each request.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("lock").clone()
    }

    /// The JSON of each request.
    pub(crate) fn inputs(&self) -> Vec<serde_json::Value> {
        let body = |text: &String| text.split_once("\r\n\r\n").expect("a body").1.to_owned();
        self.asked().iter().map(|text| serde_json::from_str(&body(text)).expect("JSON")).collect()
    }

    /// Waits until so many connections are over.
    pub(crate) async fn over(&mut self, count: usize) {
        self.gone.wait_for(|gone| *gone >= count).await.expect("the server runs");
    }
}

async fn request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        assert!(stream.read_buf(&mut bytes).await.expect("read") > 0, "the request is whole");
        let text = String::from_utf8(bytes.clone()).expect("UTF-8");
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.to_ascii_lowercase();
        let length = length.split("content-length: ").nth(1).expect("a length");
        let length: usize = length.lines().next().expect("a line").parse().expect("a number");
        if body.len() == length {
            return text;
        }
    }
}

async fn give(stream: &mut TcpStream, answer: &Answer) {
    stream.set_nodelay(true).expect("set");
    // The client may have left, which is what some tests are about.
    stream.write_all(answer.head.as_bytes()).await.ok();
    for piece in &answer.pieces {
        let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
        chunk.extend_from_slice(piece);
        chunk.extend_from_slice(b"\r\n");
        stream.write_all(&chunk).await.ok();
        if answer.pieces.len() < 100 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    match answer.end {
        End::Clean => drop(stream.write_all(b"0\r\n\r\n").await),
        End::Cut => {}
        End::Silence => {
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await.ok();
        }
    }
}
