// Import all of these: which module a C type belongs to depends on which one is loaded first.
import CAres
import CLarder
import CLibevent
import Glibc

/// The result of one attempt to read or write.
@usableFromInline
package enum IOResult: Equatable, Sendable {
    /// The number of bytes read or written. At least one, unless none were offered.
    case bytes(Int)
    case wouldBlock
    /// Reading: the peer has sent its last byte. Writing: the peer will read no more (`EPIPE`).
    case closed
    case failed(errno: CInt)
}

/// Single attempts to read and write. Interrupted calls are repeated, and writing to a peer that is gone raises no signal.
@usableFromInline
package enum IO {
    /// Reads from a file.
    package static func read(_ fd: CInt, into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        unsafe repeated(into: buffer) { unsafe Glibc.read(fd, buffer.baseAddress, buffer.count) }
    }

    /// Reads from a socket, with recv(2): read(2) costs the kernel 60 ns more.
    @usableFromInline
    package static func receive(_ fd: CInt, into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        unsafe repeated(into: buffer) { unsafe clarder_recv(fd, buffer.baseAddress, buffer.count) }
    }

    @inline(__always)
    private static func repeated(into buffer: UnsafeMutableRawBufferPointer, _ call: () -> Int) -> IOResult {
        while true {
            let count = call()
            if count > 0 { return .bytes(count) }
            if count == 0 { return unsafe buffer.isEmpty ? .bytes(0) : .closed }
            if errno != EINTR { return failure(errno) }
        }
    }

    /// - Parameter more: more bytes follow at once, so the kernel may hold back an incomplete segment.
    @usableFromInline
    package static func send(_ fd: CInt, _ bytes: UnsafeRawBufferPointer, more: Bool = false) -> IOResult {
        let flags = CInt(MSG_NOSIGNAL) | (more ? CInt(MSG_MORE) : 0)
        while true {
            let count = unsafe clarder_send(fd, bytes.baseAddress, bytes.count, flags)
            if count >= 0 { return .bytes(count) }
            if errno != EINTR { return failure(errno) }
        }
    }

    /// Writes several pieces to a socket with one call.
    ///
    /// - Parameter vectors: an array of `count` vectors.
    @usableFromInline
    package static func writev(_ fd: CInt, _ vectors: UnsafeMutableRawPointer, _ count: Int) -> IOResult {
        var message = unsafe msghdr()
        unsafe message.msg_iov = unsafe vectors.assumingMemoryBound(to: iovec.self)
        unsafe message.msg_iovlen = count
        while true {
            let sent = unsafe clarder_sendmsg(fd, &message, CInt(MSG_NOSIGNAL))
            if sent >= 0 { return .bytes(sent) }
            if errno != EINTR { return failure(errno) }
        }
    }

    /// Sends bytes of a file to a socket without copying them. They must not change before the peer has acknowledged them: the
    /// kernel keeps references to the pages.
    package static func send(_ fd: CInt, file: CInt, from offset: Int, _ count: Int) -> IOResult {
        while true {
            let sent = clarder_sendfile(fd, file, off_t(offset), count)
            if sent > 0 { return .bytes(sent) }
            // A file that is too short. None of ours is.
            if sent == 0 { return count == 0 ? .bytes(0) : .failed(errno: EIO) }
            if errno != EINTR { return failure(errno) }
        }
    }

    /// Whether sendfile(2) fails like this because of the file, or because the system does not allow the call: the socket is as it was, and the
    /// bytes can still be sent by copying them.
    package static func isOfFile(_ code: CInt) -> Bool {
        switch code {
        case EIO, EINVAL, ESPIPE, EOVERFLOW, ENOMEM, ENOSYS, EOPNOTSUPP, EPERM, EACCES: true
        default: false
        }
    }

    static func failure(_ code: CInt) -> IOResult {
        switch code {
        case EAGAIN: .wouldBlock
        case EPIPE: .closed
        default: .failed(errno: code)
        }
    }
}
