import FuzzSupport
import Redis

/// The replies that come before an error, and the error.
private func read(_ pieces: [ArraySlice<UInt8>]) -> ([RedisReply], RedisProtocolError?) {
    let reader = RedisReader(replyBytesMax: 512, elementCountMax: 64)
    var replies: [RedisReply] = []
    for piece in pieces {
        reader.feed(Array(piece))
        do throws(RedisProtocolError) {
            while let reply = try reader.next() { replies.append(reply) }
        } catch { return (replies, error) }
    }
    return (replies, nil)
}

private func elements(_ reply: RedisReply) -> Int {
    guard let list = reply.array else { return 0 }
    return list.reduce(list.count) { $0 + elements($1) }
}

/// Any input is replies, an error, or not complete. However it is split, the replies are the same.
@_cdecl("FuzzRedis_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let bytes = unsafe input(start, count)
        let (replies, error) = read([bytes[...]])
        for reply in replies { precondition(elements(reply) <= 64, "the bound of elements holds") }
        let places = [0] + splits(bytes)
        let (again, sameError) = read(zip(places, places.dropFirst()).map { bytes[$0..<$1] })
        precondition(replies == again, "a split changes no reply")
        // An incomplete reply is too long a piece earlier or later.
        if error != .replyTooLong && sameError != .replyTooLong {
            precondition(error == sameError, "a split changes no error")
        }
        var command: [UInt8] = []
        RedisCommand.append([bytes], to: &command)
        precondition(command.count >= bytes.count + 10, "a command has its arguments")
        return 0
    }
}
