import Caching
import Message

/// The stored content on its way to one client.
final class SimulatedDelivery {
    /// What of it goes out, and in which form.
    struct Choice {
        var status: UInt16
        var hasContent = false
        /// Ranges of the stored content; empty with `hasContent`: all of it, however long it gets.
        var parts: [Range<Int>] = []
        var form: CodingChoice = .asStored
    }

    enum Step { case byte(UInt8, at: Int), done, waiting, broken, hole(Int, limit: Int) }

    let record: Record
    let choice: Choice
    private var part = 0
    private var offset: Int

    init(_ record: Record, _ choice: Choice) {
        self.record = record
        self.choice = choice
        offset = choice.parts.first?.lowerBound ?? 0
    }

    /// Preconditions first, then ranges (RFC 9110 §13.2.2).
    static func choose(_ record: Record, _ exchange: SimulatedExchange) -> Choice {
        let (request, now) = (exchange.request, exchange.world.cacheClock)
        let form = chooseCoding(
            of: record.coding, length: record.length.map { UInt64($0) }, for: AcceptedCodings(request.fields),
            request.cache, compression: exchange.handling.compression, lengthMin: 8)
        if request.cache.hasPreconditions,
            evaluate(request.fields, method: request.method, against: record.cached, now: now) == .notModified
        {
            return Choice(status: 304, form: form)
        }
        var whole = Choice(status: record.cached.status, form: form)
        whole.hasContent = request.method != .head && record.cached.status != 204 && record.length != 0
        if whole.hasContent, let length = record.length { whole.parts = [0..<length] }
        guard form == .asStored, request.cache.hasRange, request.method == .get, let length = record.length else {
            return whole
        }
        switch selectRange(
            request.fields, method: .get, stored: record.cached, length: UInt64(length), now: now)
        {
        case .whole: return whole
        case .single(let range):
            return Choice(status: 206, hasContent: true, parts: [Int(range.lowerBound)..<Int(range.upperBound)])
        case .multiple(let ranges):
            let parts = ranges.map { Int($0.lowerBound)..<Int($0.upperBound) }
            return Choice(status: 206, hasContent: true, parts: parts)
        case .unsatisfiable: return Choice(status: 416)
        }
    }

    func next() -> Step {
        let body = record.body
        if choice.parts.isEmpty { return nextOfUnknown(body) }
        while part < choice.parts.count, offset >= choice.parts[part].upperBound {
            part += 1
            if part < choice.parts.count { offset = choice.parts[part].lowerBound }
        }
        guard part < choice.parts.count else { return .done }
        if offset < body.bytes.count, let byte = body.bytes[offset] { return step(byte) }
        switch body.state {
        case .failed: return .broken
        case .growing: return .waiting
        case .partial: return .hole(offset, limit: choice.parts[part].upperBound)
        case .complete: return .broken
        }
    }

    private func nextOfUnknown(_ body: ModelBody) -> Step {
        if offset < body.bytes.count, let byte = body.bytes[offset] { return step(byte) }
        switch body.state {
        case .failed: return .broken
        case .growing: return .waiting
        case .partial: return .hole(offset, limit: body.bytes.count)
        case .complete: return .done
        }
    }

    private func step(_ byte: UInt8) -> Step {
        defer { offset += 1 }
        return .byte(Representation.coded(byte, choice.form.isTransformed), at: offset)
    }
}
