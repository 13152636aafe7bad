use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
};

use hapax_services::{ServiceError, broker::Mode, sqs};

use crate::broker::{PATIENCE, check, connect};

/// Asks for `path` and returns the whole answer.
fn get(socket: &mut TcpStream, path: &str) -> io::Result<String> {
    write!(socket, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    Ok(answer)
}

fn hello(socket: &mut TcpStream) -> io::Result<()> {
    let answer = get(socket, "/?Action=ListQueues")?;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    Ok(())
}

fn ask(address: SocketAddr, path: &str) -> String {
    let answer = get(&mut connect(address, PATIENCE).unwrap(), path).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

#[test]
fn sqs_is_back_on_the_same_port_after_a_kill_and_leaves_nothing_behind() {
    check(sqs::start, hello);
}

#[test]
fn a_waiting_message_and_its_deduplication_id_survive_a_kill() {
    let mut sqs = sqs::start().unwrap();
    let make = "/?Action=CreateQueue&QueueName=orders.fifo\
                &Attribute.1.Name=FifoQueue&Attribute.1.Value=true";
    let send = "/000000000000/orders.fifo?Action=SendMessage&MessageBody=paid\
                &MessageGroupId=order-1&MessageDeduplicationId=event-1";
    let id = |answer: &str| {
        let (_, rest) = answer.split_once("<MessageId>").unwrap();
        rest.split_once("</MessageId>").unwrap().0.to_owned()
    };
    ask(sqs.address(), make);
    let first = id(&ask(sqs.address(), send));
    assert_eq!(id(&ask(sqs.address(), send)), first);

    sqs.restart(Mode::Kill).unwrap();
    assert_eq!(id(&ask(sqs.address(), send)), first);
    let receive = "/000000000000/orders.fifo?Action=ReceiveMessage&MaxNumberOfMessages=10";
    let received = ask(sqs.address(), receive);
    assert_eq!(received.matches("<MessageId>").count(), 1, "{received}");
    assert_eq!(id(&received), first);
}

#[test]
fn a_server_whose_port_was_taken_meanwhile_says_so_and_starts_when_it_is_free_again() {
    let mut sqs = sqs::start().unwrap();
    sqs.stop(Mode::Kill).unwrap();
    let taken = TcpListener::bind(sqs.address()).unwrap();
    let refusal = sqs.resume().unwrap_err();
    assert!(matches!(refusal, ServiceError::PortTaken { .. }), "{refusal}");
    assert_eq!(sqs.pid(), None);
    drop(taken);
    sqs.resume().unwrap();
    ask(sqs.address(), "/?Action=ListQueues");
}
