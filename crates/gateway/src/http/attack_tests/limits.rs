//! Too much of everything: what is over a bound is told so, or cut off.

use super::*;

#[tokio::test]
async fn heads_and_bodies_are_bounded_in_size_and_number() {
    let house = House::open().await;
    let key = bearer(&house.key("all", &SCOPES));
    let many: String = (0..200).fold(String::new(), |flood, n| flood + &format!("X-{n}: x\r\n"));
    let long = format!("X-Long: {}\r\n", "x".repeat(1 << 20));
    for flood in [many, long] {
        let mut stream = TcpStream::connect(house.serving.address).await.unwrap();
        let request =
            format!("GET /api/inbox HTTP/1.1\r\nHost: {}\r\n{key}{flood}\r\n", house.host());
        // It may be cut off while it is sent.
        drop(stream.write_all(request.as_bytes()).await);
        let answer = first(&mut stream).await;
        assert!(matches!(answer.status, 431 | 0), "{answer:?}");
    }
    for (method, route, needs) in DOORS {
        let Needs::Any(_) = needs else { continue };
        // Hooks are answered in their agent's words, whatever was sent: that is tested with the hooks.
        if *method != "POST" || route.starts_with("/hooks") {
            continue;
        }
        let line = format!("{method} {}", path(route));
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {}\r\n{key}Content-Length: 99999999999\r\n\r\n",
            house.host()
        );
        let mut stream = house.raw(&request).await;
        // Enough to be over any bound.
        let chunk = vec![b' '; 1 << 20];
        for _ in 0..20 {
            if stream.write_all(&chunk).await.is_err() {
                break;
            }
        }
        let mut bytes = Vec::new();
        drop(timeout(SOON, stream.read_to_end(&mut bytes)).await.expect("an end"));
        let answer = Answer::read(&bytes);
        // Doors that take no body answer without it, and so does one that leads nowhere; others refuse it. Cut off,
        // nothing may arrive.
        let bodiless = ["/api/login-links", "/agui/upstreams/{name}"].contains(route);
        let known = matches!(answer.status, 413 | 0) || bodiless;
        assert!(known, "{line}: {answer:?}");
    }
    assert_eq!(house.send("GET /api/inbox", &key, "").await.status, 200, "it is still there");
}

#[tokio::test]
async fn a_small_body_that_unpacks_to_a_large_one_is_refused() {
    use std::io::Write as _;
    let house = House::open().await;
    let key = bearer(&house.key("emitter", &[Scope::Emit]));
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let piece = vec![b' '; 1 << 20];
    for _ in 0..96 {
        encoder.write_all(&piece).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 8 << 20);
    let mut stream = TcpStream::connect(house.serving.address).await.unwrap();
    let head = format!(
        "POST /aep/v0.1/events HTTP/1.1\r\nHost: {}\r\n{key}Content-Encoding: gzip\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        house.host(),
        bomb.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&bomb).await.unwrap();
    let answer = first(&mut stream).await;
    assert_eq!((answer.status, answer.code()), (413, "size".to_owned()), "{answer:?}");
}

#[tokio::test]
async fn a_socket_message_over_the_bound_ends_the_socket() {
    let house = House::open().await;
    let key = bearer(&house.key("reader", &[Scope::Watch]));
    let (answer, mut socket) = house.socket(&key).await;
    assert_eq!(answer.status, 101);
    drop(socket.write_all(&frame(&vec![b' '; 64 * 1024 + 1])).await);
    ends(&mut socket).await;
    // One that only says how long it will be, and never comes.
    let (_, mut socket) = house.socket(&key).await;
    let mut head = vec![0x81, 0x80 | 127];
    head.extend(u64::MAX.to_be_bytes());
    socket.write_all(&head).await.unwrap();
    ends(&mut socket).await;
}

#[tokio::test]
async fn a_key_that_comes_too_often_is_told_when_to_come_again_and_others_are_not() {
    let house = House::with(Pushing { rate: 1, ..Pushing::default() }).await;
    let (busy, calm) = (house.key("busy", &[Scope::Emit]), house.key("calm", &[Scope::Emit]));
    let mut last = house.send_with("POST /aep/v0.1/events", &busy, "{}").await;
    for _ in 0..4 {
        last = house.send_with("POST /aep/v0.1/events", &busy, "{}").await;
    }
    assert_eq!((last.status, last.code()), (429, "rate".to_owned()), "{last:?}");
    assert!(last.head.contains("\r\nretry-after: "), "{last:?}");
    assert_eq!(house.send_with("POST /aep/v0.1/events", &calm, "{}").await.status, 200);
}

/// Somebody sends one byte now and then.
#[tokio::test]
async fn a_head_that_does_not_end_is_cut_off() {
    let house = House::open().await;
    let mut stream = house.raw("GET /healthz HTTP/1.1\r\nX-Slow: ").await;
    let slowly = async {
        let mut byte = [0; 1_024];
        loop {
            tokio::select! {
                read = stream.read(&mut byte) => match read {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                },
                () = tokio::time::sleep(Duration::from_millis(500)) => {
                    if stream.write_all(b"x").await.is_err() {
                        return;
                    }
                }
            }
        }
    };
    timeout(Duration::from_secs(40), slowly).await.expect("it is cut off after ten seconds");
}
