@testable import ClientSetup
import Testing

@Suite("The origin of larder doctor")
struct CheckOriginTests {
    let run = CheckOrigin.RunName(random: (1, 0xAB))

    @Test func `a run has a name of 32 digits`() {
        #expect(run.text == "0000000000000001" + "00000000000000ab")
        #expect(CheckOrigin.RunName(Substring(run.text)) == run)
        for text in ["", "00", run.text.uppercased(), run.text + "0", String(repeating: "g", count: 32)] {
            #expect(CheckOrigin.RunName(Substring(text)) == nil)
        }
    }

    @Test func `what a run asks for may be stored, and is remembered`() {
        var records = CheckRecords()
        let path = "/doctor/\(run.text)/curl/file?a=b"
        for _ in 1...2 {
            let answer = CheckOrigin.answer(.https, method: "GET", path: path, remembering: &records)
            #expect(answer.status == 200 && answer.mayBeStored)
        }
        _ = CheckOrigin.answer(.http, method: "HEAD", path: path, remembering: &records)
        let seen = CheckOrigin.answer(.http, method: "GET", path: "/doctor/\(run.text)/seen", remembering: &records)
        #expect(!seen.mayBeStored)
        #expect(
            CheckRecords.read(seen.body) == [
                .init(way: .https, method: "GET", path: path): 2, .init(way: .http, method: "HEAD", path: path): 1,
            ])
    }

    @Test func `the name of the run may stand anywhere in the path`() {
        var records = CheckRecords()
        _ = CheckOrigin.answer(
            .https, method: "GET", path: "/v2/\(run.text)/skopeo/manifests/latest", remembering: &records)
        #expect(CheckRecords.read(records.text(of: run)).count == 1)
    }

    @Test(arguments: ["/", "/doctor", "/doctor/x/seen", "/favicon.ico"])
    func `other paths are answered, and not remembered`(_ path: String) {
        var records = CheckRecords()
        let answer = CheckOrigin.answer(.http, method: "GET", path: path, remembering: &records)
        #expect(answer.status == 200 && !answer.mayBeStored && records.text(of: run).isEmpty)
    }

    @Test(arguments: ["POST", "PUT", "DELETE"]) func `it is read, and nothing else`(_ method: String) {
        var records = CheckRecords()
        let answer = CheckOrigin.answer(method == "" ? .http : .https, method: method, path: "/", remembering: &records)
        #expect(answer.status == 405 && !answer.mayBeStored)
    }

    @Test func `runs, requests and paths are bounded, and the oldest run gives way`() {
        var records = CheckRecords()
        let first = CheckOrigin.RunName(random: (0, 0))
        for number in 0...UInt64(CheckRecords.runsMax) {
            let name = CheckOrigin.RunName(random: (0, number))
            records.note(.init(way: .http, method: "GET", path: "/"), in: name)
        }
        #expect(records.text(of: first).isEmpty)
        for number in 0...CheckRecords.sightingsMax {
            records.note(.init(way: .http, method: "GET", path: "/\(number)"), in: first)
        }
        #expect(CheckRecords.read(records.text(of: first)).count == CheckRecords.sightingsMax)
        let long = String(repeating: "a", count: CheckRecords.pathBytesMax + 1)
        var empty = CheckRecords()
        empty.note(.init(way: .http, method: "GET", path: long), in: first)
        #expect(empty.text(of: first).isEmpty)
    }
}
