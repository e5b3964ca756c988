import Foundation
import ProgramUnderTest
import Testing

@Suite("wget", .enabled(if: installed("wget") != nil && Nginx.isInstalled, "packages wget, nginx-light"))
struct WgetTests {
    private func with(_ body: (Workplace, Nginx, Larder) async throws -> Void) async throws {
        try await Workplace.with { place in
            try await body(place, try await Nginx.start(in: place), try await Larder.start(in: place))
        }
    }

    private func wget(
        _ place: Workplace, _ larder: Larder, in folder: String, _ words: String...
    ) async throws -> Workplace.Output {
        let folder = try place.makeDirectory(folder)
        return try await place.run(
            "wget", ["--no-config", "-nv", "-t", "2", "-T", "20"] + words, environment: larder.proxy, in: folder)
    }

    @Test func `a download is whole and the second comes from the cache`() async throws {
        try await with { place, nginx, larder in
            let content = noise(400_000)
            try place.write("www/file", content)
            for round in 1...2 {
                let output = try await wget(place, larder, in: "\(round)", "-S", "\(nginx.url)/file")
                #expect(output.status == 0 && place.bytes("\(round)/file") == content, "\(output)")
                #expect(output.err.contains("Cache-Status: larder; hit") == (round == 2), "\(output)")
            }
            #expect(nginx.asked("/file").count == 1)
        }
    }

    @Test func `-r mirrors a tree, the second time from the cache`() async throws {
        try await with { place, nginx, larder in
            let pages: [(name: String, text: String)] = [
                ("index.html", "<a href=a/>a</a> <a href=b.html>b</a> <img src=pic>"),
                ("a/index.html", "<a href=deep/c.html>c</a> <a href=../>up</a>"),
                ("a/deep/c.html", "<a href=/b.html>b again</a>"), ("b.html", "the end"), ("pic", "not a page"),
            ]
            for page in pages { try place.write("www/\(page.name)", page.text.utf8) }
            let host = "127.0.0.1:\(nginx.port)"
            var asked = 0
            for round in 1...2 {
                let output = try await wget(
                    place, larder, in: "\(round)", "-r", "-l", "5", "-e", "robots=off", "\(nginx.url)/")
                #expect(output.status == 0, "\(output)")
                for page in pages {
                    #expect(textOfFile(place.path("\(round)/\(host)/\(page.name)")) == page.text)
                }
                if round == 1 { asked = nginx.asked.count }
            }
            #expect(asked == pages.count && nginx.asked.count == asked, "\(nginx.asked)")
        }
    }

    @Test func `-c resumes, whether the object is stored or not`() async throws {
        try await with { place, nginx, larder in
            let content = noise(300_000)
            try place.write("www/big", content)
            for isStored in [false, true] {
                if isStored { _ = try await wget(place, larder, in: "whole", "\(nginx.url)/big") }
                let folder = "resumed-\(isStored)"
                try place.write("\(folder)/big", content.prefix(100_001))
                let output = try await wget(place, larder, in: folder, "-c", "-S", "\(nginx.url)/big")
                #expect(output.status == 0 && place.bytes("\(folder)/big") == content, "\(output)")
                #expect(output.err.contains("206 Partial Content"), "\(output)")
            }
        }
    }

    @Test func `-c on a whole file hears 416 and takes it for done`() async throws {
        try await with { place, nginx, larder in
            let content = noise(5000)
            try place.write("www/file", content)
            _ = try await wget(place, larder, in: "done", "\(nginx.url)/file")
            let output = try await wget(place, larder, in: "done", "-c", "-S", "\(nginx.url)/file")
            #expect(output.status == 0 && place.bytes("done/file") == content, "\(output)")
            #expect(output.err.contains("416"), "\(output)")
        }
    }

    @Test func `-N asks with If-Modified-Since and gets 304 from the cache`() async throws {
        try await with { place, nginx, larder in
            try place.write("www/file", noise(5000))
            let first = try await wget(place, larder, in: "mirror", "-N", "\(nginx.url)/file")
            #expect(first.status == 0, "\(first)")
            let second = try await wget(place, larder, in: "mirror", "-N", "-S", "\(nginx.url)/file")
            #expect(second.err.contains("304 Not Modified"), "\(second)")
            #expect(second.err.contains("Cache-Status: larder; hit"), "\(second)")
            #expect(nginx.asked("/file").count == 1)
        }
    }

    @Test func `a password in the proxy's URL`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            try place.write("www/file", noise(5000))
            let larder = try await Larder.startWithUsers(in: place)
            for (credentials, status) in [("ali:sesame", Int32(0)), ("ali:wrong", 8)] {
                let output = try await place.run(
                    "wget", ["--no-config", "-nv", "-t", "1", "-O", place.path("got"), "\(nginx.url)/file"],
                    environment: larder.proxy(as: credentials))
                #expect(output.status == status, "\(credentials): \(output)")
                if status == 0 { #expect(place.bytes("got") == noise(5000)) }
            }
        }
    }
}
