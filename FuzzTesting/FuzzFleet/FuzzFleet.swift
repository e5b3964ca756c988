import Fleet
import FuzzSupport

/// No hash, but as long as one.
private struct SumHash: FleetHash {
    func code(_ beginning: [UInt8], _ rest: borrowing Span<UInt8>) -> [UInt8] {
        var sum = UInt64(beginning.count + rest.count)
        func add(_ byte: UInt8) { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01B3 }
        beginning.forEach(add)
        for index in rest.indices { add(rest[index]) }
        return (0..<32).map { UInt8(truncatingIfNeeded: sum >> UInt64($0 % 8 * 8)) }
    }
}

extension FleetHash {
    fileprivate func code(_ bytes: [UInt8]) -> [UInt8] { code([], bytes.span) }
}

private let hash = SumHash()

private func checkRecord(_ bytes: [UInt8], _ key: [UInt8]) {
    do throws(SharedRecordError) {
        let record = try SharedRecord.decode(bytes, zone: "z", key: key, hash: hash)
        precondition(record.encode(hash: hash).head == bytes, "written again it differs")
        for part in record.parts {
            precondition(part.range.upperBound <= record.bodyLength, "a part lies in the body")
            do throws(SharedRecordError) { _ = try record.openPart(part, bytes, hash: hash) } catch {}
        }
    } catch {}
}

/// Puts magic, version, length and code right, which no random input has. The four bytes of the length are in the input, too.
private func sealed(_ bytes: [UInt8]) -> [UInt8] {
    guard bytes.count >= 7 else { return bytes }
    let length = bytes.count + 5 + 32
    let head = SharedRecord.magic + [SharedRecord.version] + bytes[..<3]
    let content = head + (0..<4).map { UInt8(truncatingIfNeeded: length >> (8 * $0)) } + bytes[7...]
    return content + hash.code(Array("record\0".utf8) + content)
}

/// Pieces that end with a byte 1.
private func checkPurge(_ bytes: [UInt8]) {
    var fields = bytes.split(separator: 1, omittingEmptySubsequences: false).map(Array.init)
    if fields.count.isMultiple(of: 2) == false { fields.append([]) }
    do throws(PurgeEntryError) { _ = try PurgeEntry(fields: fields, hash: hash) } catch {}
    var message = Array("purge\0".utf8)
    for field in fields {
        message += (0..<4).map { UInt8(truncatingIfNeeded: field.count >> (8 * $0)) } + field
    }
    let digits = Array("0123456789abcdef".utf8)
    let code = hash.code(message).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    let sealed = fields + [Array("code".utf8), code]
    do throws(PurgeEntryError) {
        let entry = try PurgeEntry(fields: sealed, hash: hash)
        precondition(entry.fields(hash: hash) == sealed, "written again it differs")
    } catch { precondition(error.isAuthentic || error == .tooLong, "the code is right") }
}

/// As the purge of an entry.
private func checkInvalidatedKeys(_ bytes: [UInt8]) {
    for purge in [bytes, Array("invalidates ".utf8) + bytes] {
        guard let invalidated = InvalidatedKeys(purge: purge) else { continue }
        precondition(invalidated.bytes == purge, "written again it differs")
    }
}

/// With the code that belongs to it.
private func checkReport(_ bytes: [UInt8]) {
    do throws(NodeReportError) { _ = try NodeReport.decode(bytes, of: "a", hash: hash) } catch {}
    let content = Array("LNOD 1 ".utf8) + bytes
    let digits = Array("0123456789abcdef".utf8)
    let code = hash.code(Array("report\0".utf8) + content).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    do throws(NodeReportError) {
        let report = try NodeReport.decode(content + Array(" code=".utf8) + code, of: "a", hash: hash)
        let again = try NodeReport.decode(report.encode(hash: hash), of: "a", hash: hash)
        precondition(again == report, "written again it differs")
    } catch { precondition(error != .wrongCode && error != .notAReport, "the code is right") }
}

/// What a node says that asks, with the code that belongs to it; and what it says of its answer.
private func checkQuestion(_ bytes: [UInt8]) {
    if let verdict = PeerVerdict(bytes[...]) {
        precondition(PeerVerdict(Array(verdict.text.utf8)[...]) == verdict, "written again it differs")
    }
    do throws(PeerObjection) { _ = try PeerQuestion.decode(bytes, hash: hash) } catch {}
    let digits = Array("0123456789abcdef".utf8)
    let code = hash.code(Array("peer\0".utf8) + bytes).prefix(16).flatMap {
        [digits[Int($0 >> 4)], digits[Int($0 & 15)]]
    }
    do throws(PeerObjection) {
        let question = try PeerQuestion.decode(Array("2 ".utf8) + code + bytes, hash: hash)
        guard let value = question.encoded(hash: hash) else { return }
        let again = try PeerQuestion.decode(value, hash: hash)
        precondition(again == question, "written again it differs")
    } catch { precondition(error == .malformed, "the code is right") }
}

/// The first byte says what the rest is: a record, a record whose code is put right, the fields of a purge, an id, the report of a node, what a node asks, or
/// a position.
@_cdecl("FuzzFleet_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let bytes = unsafe input(start, count)
        let rest = Array(bytes.dropFirst())
        switch bytes.first {
        case nil: break
        case 0x30: checkRecord(rest, Array("k".utf8))
        case 0x31: checkRecord(sealed(rest), Array("k".utf8))
        case 0x32: checkPurge(rest)
        case 0x33: if let id = StreamID(rest) { precondition(id.text == rest, "written again it differs") }
        case 0x35: checkReport(rest)
        case 0x36: checkQuestion(rest)
        case 0x37: checkInvalidatedKeys(rest)
        default:
            if let position = StreamPosition(rest) { precondition(position.bytes == rest, "written again it differs") }
        }
        return 0
    }
}
