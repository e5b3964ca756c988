# The front door of Larder. `make` alone says what there is.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help packages descriptions serve test test-asan test-tsan test-crash bench fuzz fuzz-check simulate soak format format-check release check-examples image-proof

# What building needs, what the real-client tests need: package names of Debian 12.
BUILD_PACKAGES := libevent-dev libssl-dev zlib1g-dev libyaml-dev libc-ares-dev libcrypt-dev liblmdb-dev libisal-dev libsodium-dev libpsl-dev libpacparser-dev libkrb5-dev libldap-dev libhiredis-dev libmimalloc-dev pkg-config
TEST_PACKAGES := nginx-light apt-utils python3-pip python3-venv git curl wget fcgiwrap openssl apache2-utils shellcheck busybox fish default-jre-headless libnss3-tools maven ruby composer unzip skopeo golang-go squid dante-server microsocks apache2-bin libapache2-mod-auth-gssapi gss-ntlmssp krb5-kdc krb5-admin-server krb5-user slapd ldap-utils redis-server python3-botocore python3-oauthlib python3-requests python3-aiohttp haproxy chromium gpg gpg-agent gpgconf gpgv debootstrap apt-mirror gradle dnf rpm createrepo-c podman ruby-bundler git-lfs aria2
# What they need from PyPI, in a directory of their own.
TEST_CLIENTS := uv huggingface_hub bandersnatch hf_transfer py-rattler
BENCH_PACKAGES := gcc libc6-dev binutils valgrind strace
FORMATTED := Package.swift Sources Tests
RELEASE := swift build -c release --static-swift-stdlib --product larder
LARDER = $(shell swift build -c release --static-swift-stdlib --show-bin-path)/larder
FUZZ_SECONDS ?= 60
SIMULATE_STEPS ?= 5000000
CRASH_ROUNDS ?= 200
CRASH_SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
SIMULATE_SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
SOAK_SECONDS ?= 60
SOAK_SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')

help: ## show this
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

packages: ## install the Debian packages that are missing (WANT="..." for others)
	@docker/install-packages.sh $(or $(WANT),$(BUILD_PACKAGES))

serve: packages ## build and run the proxy with conf/larder.yaml (Ctrl-C stops it)
	$(RELEASE)
	exec "$(LARDER)" serve --config conf/larder.yaml

test: ## run all tests
	@docker/install-packages.sh $(BUILD_PACKAGES) $(TEST_PACKAGES)
	Tests/install-clients.sh $(TEST_CLIENTS)
	Tests/run.sh

test-asan: packages ## run all tests, scenarios included, under AddressSanitizer
	ASAN_OPTIONS=suppressions=$(CURDIR)/Tests/asan-suppressions LSAN_OPTIONS=suppressions=$(CURDIR)/Tests/lsan-suppressions Tests/run.sh --sanitize=address --scratch-path .build/asan

test-tsan: packages ## run all tests, scenarios included, under ThreadSanitizer
	Tests/run.sh --sanitize=thread --scratch-path .build/tsan

test-crash: packages ## kill the proxy CRASH_ROUNDS times (200: minutes) from CRASH_SEED (random), and verify what it serves
	LARDER_CRASH_SEED=$(CRASH_SEED) LARDER_CRASH_ROUNDS=$(CRASH_ROUNDS) swift test --filter CrashTests

bench: ## run our own benchmarks and compare with the checked-in thresholds
	@docker/install-packages.sh $(BUILD_PACKAGES) $(BENCH_PACKAGES)
	$(RELEASE)
	Benchmarks/run.sh "$(LARDER)"

fuzz: packages ## fuzz each parser for FUZZ_SECONDS (60)
	FuzzTesting/run.sh $(FUZZ_SECONDS)

fuzz-check: packages ## build each fuzz target, and run it once on its seeds and on what failed before
	FuzzTesting/run.sh 0

simulate: packages ## run the simulation for SIMULATE_STEPS (5 million: minutes) from SIMULATE_SEED (random)
	@seed=$(SIMULATE_SEED); echo "LARDER_SIMULATE_SEED=$$seed LARDER_SIMULATE_STEPS=$(SIMULATE_STEPS)"; \
	LARDER_SIMULATE_SEED=$$seed LARDER_SIMULATE_STEPS=$(SIMULATE_STEPS) swift test --filter SimulationTests

descriptions: packages ## list the texts that show a value as Swift spells it (minutes)
	swift build
	Tests/descriptions.py

soak: packages ## send requests for SOAK_SECONDS (60) to origins with every fault from SOAK_SEED (random), without and with a disk
	LARDER_SOAK_SEED=$(SOAK_SEED) LARDER_SOAK_SECONDS=$(SOAK_SECONDS) swift test --filter SoakTests

format: ## format all Swift sources in place
	swift format format --in-place --parallel --recursive $(FORMATTED)

format-check: ## fail where a source is not formatted
	swift format lint --strict --parallel --recursive $(FORMATTED)

release: packages ## build the release binary
	$(RELEASE)
	@echo "$(LARDER)"

# The files that they name are on other machines.
check-examples: release ## check conf/larder.yaml and every example configuration
	@for file in conf/larder.yaml conf/examples/*.yaml; do "$(LARDER)" check --elsewhere --config "$$file" || exit 1; done

image-proof: release ## start the release binary in a bare Debian tree with the image's packages only (root)
	docker/prove-runtime.sh "$(LARDER)"
