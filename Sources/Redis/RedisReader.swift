import CHiredis
import Glibc

/// Reads the replies of a server from the bytes of its connection, with the reader of hiredis (RESP2).
///
/// Feed what one read of the socket returned, and call `next` until it returns nil. hiredis moves the unread bytes to the front of its buffer
/// after replies, so pieces of up to 64 KiB are cheaper than one of many megabytes.
///
/// hiredis bounds the depth of arrays (8) and nothing else. An announced array of 10⁹ elements takes 8 GB of address space, and seconds when it is
/// released. So the reader counts the elements that the arrays of a reply announce, before there is memory for them, and the bytes of a reply.
///
/// The two bytes behind a bulk string are skipped, whatever they are: hiredis does not compare them.
///
/// After an error the reader is dead: it drops what it is fed, and `next` throws the same error again. One thread uses a reader.
@safe package final class RedisReader {
    /// The most bytes of one reply, with its framing.
    package let replyBytesMax: Int
    /// The most elements that all arrays of one reply may announce together. An element takes up to 80 bytes while it is read.
    package let elementCountMax: Int
    /// The most bytes of a status, of an error, of an integer and of a length.
    package static let lineBytesMax = 64 << 10
    /// What failed, if anything did.
    package private(set) var failure: RedisProtocolError?

    private let reader: UnsafeMutablePointer<redisReader>
    private let functions: UnsafeMutablePointer<redisReplyObjectFunctions>
    private let allowance: UnsafeMutablePointer<Allowance>
    /// What was fed since the end of the last complete reply.
    private var pendingBytes = 0

    /// The buffer of hiredis is released when it is empty and has more room than this, in bytes. It holds the parts of long bodies (256 KiB) without
    /// a new allocation for each.
    private static let idleBytesMax = 1 << 20

    /// What `createArray` needs to know. hiredis passes a pointer to it with each task.
    @unsafe private struct Allowance {
        var elementsLeft: Int
        var isExceeded = false
        let createArray: @convention(c) (UnsafePointer<redisReadTask>?, CInt) -> UnsafeMutableRawPointer?
    }

    package init(replyBytesMax: Int = 4 << 20, elementCountMax: Int = 64 << 10) {
        precondition(replyBytesMax > 0 && elementCountMax > 0, "a reply has bytes")
        self.replyBytesMax = replyBytesMax
        self.elementCountMax = elementCountMax
        guard let reader = unsafe redisReaderCreate(), let defaults = unsafe reader.pointee.fn,
            let createArray = unsafe defaults.pointee.createArray
        else { preconditionFailure("there is no memory for a reader") }
        unsafe self.reader = unsafe reader
        unsafe allowance = .allocate(capacity: 1)
        unsafe allowance.initialize(to: Allowance(elementsLeft: elementCountMax, createArray: createArray))
        unsafe functions = .allocate(capacity: 1)
        unsafe functions.initialize(to: defaults.pointee)
        unsafe functions.pointee.createArray = { task, count in
            guard let allowance = unsafe task?.pointee.privdata?.assumingMemoryBound(to: Allowance.self) else {
                return nil
            }
            guard unsafe Int(count) <= allowance.pointee.elementsLeft else {
                unsafe allowance.pointee.isExceeded = true
                return nil
            }
            unsafe allowance.pointee.elementsLeft -= Int(count)
            return unsafe allowance.pointee.createArray(task, count)
        }
        unsafe reader.pointee.fn = unsafe functions
        unsafe reader.pointee.privdata = unsafe UnsafeMutableRawPointer(allowance)
        unsafe reader.pointee.maxbuf = RedisReader.idleBytesMax
    }

    deinit {
        // It releases an incomplete reply with a function of the table.
        unsafe redisReaderFree(reader)
        unsafe functions.deallocate()
        unsafe allowance.deallocate()
    }

    /// Takes bytes of the connection, which are copied.
    package func feed(_ bytes: UnsafeRawBufferPointer) {
        guard failure == nil, let start = bytes.baseAddress, bytes.count > 0 else { return }
        pendingBytes += bytes.count
        // Its error is that of the next reply.
        _ = unsafe redisReaderFeed(reader, start.assumingMemoryBound(to: CChar.self), bytes.count)
    }

    package func feed(_ bytes: [UInt8]) {
        unsafe bytes.withUnsafeBytes { unsafe feed($0) }
    }

    /// Returns the next reply, or nil if it is not complete.
    package func next() throws(RedisProtocolError) -> RedisReply? {
        if let failure { throw failure }
        var found: UnsafeMutableRawPointer?
        guard unsafe redisReaderGetReply(reader, &found) == REDIS_OK else { throw die(of: readerFailure()) }
        guard let found = unsafe found else {
            if pendingBytes > replyBytesMax { throw die(of: .replyTooLong) }
            if isLineTooLong { throw die(of: .lineTooLong) }
            return nil
        }
        defer { unsafe freeReplyObject(found) }
        let left = unread
        let length = pendingBytes - left
        pendingBytes = left
        unsafe allowance.pointee.elementsLeft = elementCountMax
        if length > replyBytesMax { throw die(of: .replyTooLong) }
        guard let reply = unsafe RedisReader.copy(found.assumingMemoryBound(to: redisReply.self)) else {
            throw die(of: .malformed("a type of RESP3"))
        }
        return reply
    }

    /// The bytes in the buffer of hiredis that it has not read.
    private var unread: Int { unsafe reader.pointee.len - reader.pointee.pos }

    /// hiredis searches an incomplete line anew with each feed, so a long line that comes byte by byte would keep a thread busy.
    private var isLineTooLong: Bool {
        let count = unread
        guard count > RedisReader.lineBytesMax else { return false }
        let type = unsafe withUnsafeBytes(of: reader.pointee.rstack) { stack in
            unsafe stack.assumingMemoryBound(to: redisReadTask.self)[Int(reader.pointee.ridx)].type
        }
        // A long bulk string is no line, once its length is there.
        guard type == REDIS_REPLY_STRING else { return true }
        return unsafe memchr(reader.pointee.buf + reader.pointee.pos, 0x0D, RedisReader.lineBytesMax) == nil
    }

    private func readerFailure() -> RedisProtocolError {
        if unsafe allowance.pointee.isExceeded { return .tooManyElements }
        if unsafe reader.pointee.err == REDIS_ERR_OOM { return .outOfMemory }
        let text = unsafe withUnsafeBytes(of: reader.pointee.errstr) { unsafe Array($0.prefix { $0 != 0 }) }
        return .malformed(String(decoding: text, as: UTF8.self))
    }

    private func die(of error: RedisProtocolError) -> RedisProtocolError {
        failure = error
        return error
    }

    // MARK: copies

    /// Returns nil if something is of a type that RESP2 does not have, which later releases of hiredis read.
    private static func copy(_ reply: UnsafeMutablePointer<redisReply>) -> RedisReply? {
        switch unsafe reply.pointee.type {
        case REDIS_REPLY_STATUS: return unsafe .status(bytes(of: reply))
        case REDIS_REPLY_ERROR: return unsafe .error(bytes(of: reply))
        case REDIS_REPLY_STRING: return unsafe .bytes(bytes(of: reply))
        case REDIS_REPLY_INTEGER: return unsafe .integer(reply.pointee.integer)
        case REDIS_REPLY_NIL: return .nothing
        case REDIS_REPLY_ARRAY:
            let count = unsafe Int(reply.pointee.elements)
            var elements: [RedisReply] = []
            elements.reserveCapacity(count)
            for index in 0..<count {
                guard let element = unsafe reply.pointee.element[index], let copied = unsafe copy(element) else {
                    return nil
                }
                elements.append(copied)
            }
            return .list(elements)
        default: return nil
        }
    }

    private static func bytes(of reply: UnsafeMutablePointer<redisReply>) -> [UInt8] {
        unsafe Array(UnsafeRawBufferPointer(start: reply.pointee.str, count: Int(reply.pointee.len)))
    }
}
