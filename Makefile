# make demo   set up what is missing, build, run the main job on a small messy sample set
# make test   everything
# make bench  prep against the tools that are installed (bench/README.md)
# make test-loaders   caches read by the real libraries (installs some 6 GB below target/loaders)
# make wheel  a wheel with the binary, the reader of caches and its decoder, in target/wheels

CARGO ?= cargo
DEMO := target/demo
export CARGO_TERM_PROGRESS_WHEN ?= never

.PHONY: demo test check bench tools clean-demo test-loaders wheel

demo: tools
	$(CARGO) build --release --bin prep --example sample_set
	rm -rf $(DEMO)
	target/release/examples/sample_set $(DEMO)/leaves
	cd $(DEMO)/leaves && ../../release/prep shrink --short-edge 512
	@echo
	@echo "Sources: $(DEMO)/leaves   copies and manifest: $(DEMO)/leaves-512   the tool: target/release/prep"

test: tools
	$(CARGO) test --workspace
	./tests/references.sh
	./tests/pages.sh
	$(CARGO) test --no-default-features --test it -- decode:: shrink:: stats::

# libjpeg-turbo is built from source with its SIMD code, which needs these two and a C++ compiler for their checks.
tools:
	@./tests/tools.sh

bench:
	$(CARGO) build --release --bin prep
	python3 bench/shrink.py

test-loaders: tools
	$(CARGO) build --bin prep
	./tests/loaders.sh

wheel: tools
	python3 -m pip wheel --no-deps --wheel-dir target/wheels .

clean-demo:
	rm -rf $(DEMO)
