import Caching
import Foundation
import Message
import Storage
import Testing

@testable import Server

/// A stored response keeps its head once: its fields are ranges in the head that is sent.
@Suite("StoredResponse: fields in the head that is sent") struct StoredFieldsTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var head: String
        var status: UInt16 = 200
        var contentLength: Int? = 3
        /// Lines that are not stored.
        var dropped: [String] = []
        /// Nil: the fields keep bytes of their own.
        var wire: String?
        var testDescription: String { head }
    }

    static let rows = [
        Row(
            head: "ETag: \"a\"\r\nContent-Length: 3\r\nX: y\r\n",
            wire: "ETag: \"a\"\r\nX: y\r\nContent-Length: 3\r\nAge: "),
        Row(head: "content-length:003\r\nX:y\r\n", wire: "X:y\r\nContent-Length: 3\r\nAge: "),
        Row(
            head: "A:  b  \r\nConnection: x\r\nX: gone\r\nc:d\r\n", dropped: ["Connection", "X"],
            wire: "A:  b\r\nc:d\r\nContent-Length: 3\r\nAge: "),
        Row(head: "A: b\r\n", contentLength: nil, wire: "A: b\r\nAge: "),
        Row(
            head: "A: b\r\nEmpty:\r\nEmpty: \r\nZ: 1\r\n",
            wire: "A: b\r\nEmpty:\r\nEmpty: \r\nZ: 1\r\nContent-Length: 3\r\nAge: "),
        Row(head: "", wire: "Content-Length: 3\r\nAge: "),
        Row(head: "", status: 204, contentLength: 0, wire: "Age: "),
        // What the head does not have in full.
        Row(head: "A: b\r\nAge: 7\r\nC: d\r\n"),
        Row(head: "A: b\r\nContent-Length: 0\r\n", status: 204, contentLength: 0),
        Row(head: "A: b\r\nContent-Length: 9\r\n", contentLength: nil),
    ]

    @Test(arguments: rows) func `names and values stay, in their order`(_ row: Row) throws {
        let given = StoredFieldsTests.fields(row.head).dropping { line in
            let name = String(decoding: StoredFieldsTests.fields(row.head).name(of: line), as: UTF8.self)
            return row.dropped.contains(name)
        }
        let record = try StoredFieldsTests.record(given, status: row.status, contentLength: row.contentLength)
        let text = StoredFieldsTests.text
        #expect(text(record.fields) == text(given))
        #expect(record.fields.present == given.present)
        guard let wire = row.wire else {
            #expect(record.fields.bytes == given.bytes)
            return
        }
        #expect(record.fields.bytes == record.head)
        #expect(String(decoding: record.head, as: UTF8.self).hasSuffix("\r\n" + wire))
        // A new head for the same fields, as after a 304 that changes nothing.
        #expect(record.outdated.head == record.head && text(record.outdated.fields) == text(given))
    }

    @Test(arguments: rows) func `what Larder adds to Via stands behind them`(_ row: Row) throws {
        let given = StoredFieldsTests.fields(row.head)
        let whole = given.appending(.via, literal: "1.1 larder")
        let (added, contained) = (
            try StoredFieldsTests.record(
                given, via: "1.1 larder", status: row.status, contentLength: row.contentLength),
            try StoredFieldsTests.record(whole, status: row.status, contentLength: row.contentLength)
        )
        #expect(added.head == contained.head)
        #expect(String(decoding: added.head, as: UTF8.self).contains("\r\nVia: 1.1 larder\r\n"))
        #expect(StoredFieldsTests.text(added.fields) == StoredFieldsTests.text(whole))
        #expect(added.fields.present == whole.present)
    }

    /// A 304 that changes values to others of the same length (RFC 9111 §3.2).
    @Test(arguments: rows.filter { $0.dropped.isEmpty && !$0.head.contains("Age") })
    func `new times make the head that a new response has`(_ row: Row) throws {
        let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
        let given = StoredFieldsTests.fields(date + row.head)
        let later = StoredFieldsTests.fields(date.replacing("37", with: "59") + row.head)
        let record = try StoredFieldsTests.record(
            given, via: "1.1 larder", status: row.status, contentLength: row.contentLength)
        let update = StoredFieldsTests.fields(date.replacing("37", with: "59"))
        let freshened = freshening(record.fields, of: record.cached, by: update, received: record.cached.date)
        let expected = try StoredFieldsTests.record(
            later, via: "1.1 larder", status: row.status, contentLength: row.contentLength)
        let renewed = record.renewed(times: record.cached, fields: freshened.fields)
        #expect(renewed.head == expected.head)
        #expect(StoredFieldsTests.text(renewed.fields) == StoredFieldsTests.text(expected.fields))
        #expect(renewed.headHasLength == expected.headHasLength)
    }

    @Test(arguments: [[], ["http://a/1"], ["http://a/1", "https://b:8443/2"]])
    func `addresses are read as they were written, and a head without them has none`(_ addresses: [String]) throws {
        let given = StoredAddresses(addresses.map { Array($0.utf8) })
        let record = try StoredFieldsTests.record(
            StoredFieldsTests.fields("ETag: \"a\"\r\n"), status: 200, contentLength: 3, addresses: given)
        let appended = unsafe Array("abc".utf8).withUnsafeBytes { unsafe record.body.append($0) }
        #expect(appended == .appended && record.body.finish())
        for record in [record, record.outdated, record.moved(by: Seconds(3))] {
            let form = try #require(StoredResponse.format.form(record))
            #expect(form.attributes.addresses == given.list)
            let copy = StoredCopy(
                id: StoredID(rawValue: 1),
                place: StoredPlace(form: .whole, bodyBytes: 3, bytes: 99, location: .init(0, 0)),
                keyBytes: record.keyBytes, attributes: form.attributes, head: form.head, checksums: [])
            let read = try #require(StoredResponse.format.record(record.key, copy, record.body) as? StoredResponse)
            #expect(read.addresses == given)
            // A version before addresses were stored knows four flags, and nothing behind the fields that it knows.
            #expect(form.head[1] & 16 == (given.isEmpty ? 0 : 16))
        }
    }

    @Test func `a length that has become known comes into the head with new times, too`() throws {
        let record = try StoredFieldsTests.record(StoredFieldsTests.fields("A: b\r\n"), status: 200, contentLength: nil)
        let appended = unsafe Array("abc".utf8).withUnsafeBytes { unsafe record.body.append($0) }
        #expect(appended == .appended && record.body.finish())
        let renewed = record.renewed(times: record.cached, fields: record.fields)
        #expect(renewed.headHasLength)
        #expect(String(decoding: renewed.head, as: UTF8.self).hasSuffix("\r\nA: b\r\nContent-Length: 3\r\nAge: "))
    }

    private static func text(_ fields: Fields) -> [String] {
        fields.lines.map { line in
            let isLength = line.name == .contentLength
            let name = isLength ? "Content-Length" : String(decoding: fields.name(of: line), as: UTF8.self)
            let value = String(decoding: fields.value(of: line), as: UTF8.self)
            return "\(line.name) \(name)=\(isLength ? "\(Int(value) ?? -1)" : value)"
        }
    }

    /// The lines of a head as a parser finds them, behind a start line.
    private static func fields(_ head: String) -> Fields {
        let start = "HTTP/1.1 200 OK\r\n"
        let bytes = Array((start + head + "\r\n").utf8)
        var section = FieldSection()
        var position = start.utf8.count
        for line in head.components(separatedBy: "\r\n").dropLast() {
            let name = line.prefix { $0 != ":" }
            let rest = line.dropFirst(name.count + 1)
            let spaces = rest.prefix { $0 == " " }.count
            let value = String(rest.dropFirst(spaces)).trimmed
            let nameEnd = position + name.count
            // Of an empty value the parser gives the end of the line.
            let valueStart = nameEnd + 1 + (value.isEmpty ? rest.count : spaces)
            section.append(
                FieldLine(
                    name: FieldName(spelling: Array(name.utf8)), nameStart: UInt32(position), nameEnd: UInt32(nameEnd),
                    valueStart: UInt32(valueStart), valueEnd: UInt32(valueStart + value.count)))
            position += line.count + 2
        }
        return Fields(bytes: bytes, section: section)
    }

    private static func record(
        _ fields: Fields, via: StaticString? = nil, status: UInt16, contentLength: Int?,
        addresses: StoredAddresses = StoredAddresses()
    ) throws -> StoredResponse {
        let tier = MemoryTier(budget: 1 << 20, objectMax: 1 << 16, variantsPerKeyMax: 4)
        let time = WallTime(secondsSinceEpoch: 1_700_000_000)
        let cached = CachedResponse(
            status: status, fields: fields, requestTime: time, responseTime: time, policy: CachePolicy())
        let body = try #require(tier.makeBody(expectedLength: contentLength))
        return StoredResponse(
            key: StorageKey(high: 1, low: 1), keyBytes: Array("http://a/".utf8), cached: cached, fields: fields,
            via: via,
            secondaryKey: nil, body: body, contentLength: contentLength, storage: .permanent,
            addresses: addresses)
    }
}

extension String {
    fileprivate var trimmed: String {
        var text = self[...]
        while text.last == " " { text.removeLast() }
        return String(text)
    }
}
