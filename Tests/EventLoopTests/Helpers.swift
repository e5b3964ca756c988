import EventLoop
import CAres
import CLarder
import Glibc
import Testing

struct TestFailure: Error { var what: String }

/// Two connected, non-blocking TCP sockets of loopback.
struct SocketPair: ~Copyable {
    let a: Descriptor
    let b: Descriptor

    /// The descriptors, now the caller's to close.
    consuming func parts() -> (CInt, CInt) { (a.release(), b.release()) }
}

func loopback(_ port: UInt16 = 0) -> SocketAddress { SocketAddress(v4: 0x7f00_0001, port: port) }

func descriptor(_ start: consuming ConnectStart) -> Descriptor {
    switch consume start {
    case .connected(let descriptor): descriptor
    case .inProgress(let descriptor): descriptor
    }
}

/// Waits until the descriptor is ready.
func wait(_ fd: CInt, for events: Int32) {
    var entry = pollfd(fd: fd, events: Int16(events), revents: 0)
    _ = unsafe poll(&entry, 1, 10_000)
}

func acceptOne(_ listener: CInt) throws -> Descriptor {
    wait(listener, for: POLLIN)
    switch Sockets.accept(listener) {
    case .accepted(let descriptor, _): return descriptor
    default: throw TestFailure(what: "nobody connected")
    }
}

func socketPair() throws -> SocketPair {
    let listener = try Sockets.listen(loopback(), reusePort: false, backlog: 1)
    let a = descriptor(try Sockets.connect(try Sockets.localAddress(listener.rawValue)))
    let b = try acceptOne(listener.rawValue)
    return SocketPair(a: a, b: b)
}

/// Blocks until all is sent.
func sendAll(_ fd: CInt, _ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
        switch unsafe rest.withUnsafeBytes({ unsafe IO.send(fd, $0) }) {
        case .bytes(let count): rest = rest.dropFirst(count)
        case .wouldBlock: wait(fd, for: POLLOUT)
        case .closed, .failed: return
        }
    }
}

/// Blocks until `count` bytes or the end have come.
func receive(_ fd: CInt, _ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65536)
    while bytes.count < count {
        let result = unsafe chunk.withUnsafeMutableBytes { buffer in
            unsafe IO.receive(fd, into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(count - bytes.count)))
        }
        switch result {
        case .bytes(let got): bytes += chunk.prefix(got)
        case .wouldBlock: wait(fd, for: POLLIN)
        case .closed, .failed: return bytes
        }
    }
    return bytes
}

/// Turns the loop until `condition` holds, at most 20 seconds.
func runLoop(_ loop: EventLoop, until condition: @escaping () -> Bool) {
    guard !condition() else { return }
    var hasTimedOut = false
    let limit = Timer {
        hasTimedOut = true
        loop.stop()
    }
    loop.timers.schedule(limit, after: .seconds(20))
    func check() {
        guard !condition(), !hasTimedOut else { return loop.stop() }
        loop.afterTurn(check)
    }
    loop.afterTurn(check)
    loop.run()
    loop.timers.cancel(limit)
    #expect(!hasTimedOut, "the loop waited in vain")
}
