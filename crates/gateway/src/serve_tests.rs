use super::*;
use crate::Settings;
use crate::clock::Clock;

#[tokio::test]
async fn a_connection_too_many_is_told_so_or_cut() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings::new(dir.path().join("data"));
    let gateway = Gateway::open(settings, Clock::default()).unwrap();
    for (room, told) in [(1, true), (0, false)] {
        let run = Run {
            gateway: Arc::clone(&gateway),
            stop: CancellationToken::new(),
            tasks: gateway.tasks.clone(),
            connections: Arc::new(Semaphore::new(0)),
            turned_away: Arc::new(Semaphore::new(room)),
        };
        let (mut ours, theirs) = tokio::io::duplex(4_096);
        run.connection(theirs, Router::new());
        let mut answer = String::new();
        let read = async {
            let mut bytes = vec![0; 4_096];
            let mut count = 0;
            loop {
                let more = ours.read(&mut bytes[count..]).await.unwrap();
                if more == 0 {
                    break;
                }
                count += more;
            }
            answer = String::from_utf8(bytes[..count].to_vec()).unwrap();
        };
        tokio::time::timeout(Duration::from_secs(5), read).await.unwrap();
        assert_eq!(answer.starts_with("HTTP/1.1 503 "), told, "{answer}");
        if told {
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.contains("Retry-After: 1"), "{head}");
            assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}: {body}");
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            assert_eq!(body["error"]["code"], "busy");
        }
    }
    assert!(gateway.metrics().contains("banister_connections_refused_total 2\n"));
}

#[test]
fn connections_leave_room_for_all_other_files() {
    assert_eq!(most_at_port(None), MOST_AT_PORT);
    assert_eq!(most_at_port(Some(1 << 20)), MOST_AT_PORT);
    assert_eq!(most_at_port(Some(1_024)), 512);
    assert_eq!(most_at_port(Some(256)), 64, "a few there must be");
}
