//! What each operation does to a shape, how many numbers it trains, what it keeps.

use super::Shape;
use super::layers::Layer;
use super::run::Value;

impl Layer<'_, '_> {
    pub(super) fn conv(&mut self) -> Result<(), String> {
        let (c, h, w) = self.map()?;
        let out = self.first("the number of its channels")?;
        let (k, s, p, d) = (self.both("k", 1)?, self.both("s", 1)?, self.both("p", 0)?, self.both("d", 1)?);
        let shape =
            Shape::Map(out, window(h, k.0, s.0, p.0, d.0, false)?, window(w, k.1, s.1, p.1, d.1, false)?);
        self.convolve(c, out, k, shape)
    }

    pub(super) fn deconv(&mut self) -> Result<(), String> {
        let (c, h, w) = self.map()?;
        let out = self.first("the number of its channels")?;
        let (k, s, p, op) = (self.both("k", 1)?, self.both("s", 1)?, self.both("p", 0)?, self.both("op", 0)?);
        let side = |n: u64, k: u64, s: u64, p: u64, op: u64| {
            n.saturating_sub(1)
                .saturating_mul(s)
                .saturating_add(k)
                .saturating_add(op)
                .saturating_sub(p.saturating_mul(2))
        };
        self.convolve(c, out, k, Shape::Map(out, side(h, k.0, s.0, p.0, op.0), side(w, k.1, s.1, p.1, op.1)))
    }

    fn convolve(&mut self, c: u64, out: u64, k: (u64, u64), shape: Shape) -> Result<(), String> {
        let groups = self.number("g", 1)?;
        if groups == 0 || !c.is_multiple_of(groups) || !out.is_multiple_of(groups) {
            return Err(format!("{c} channels into {out} do not fall into {groups} groups"));
        }
        let weights = [c / groups, out, k.0, k.1].iter().try_fold(1_u64, |all, n| all.checked_mul(*n));
        let weights = weights.filter(|n| *n < 1 << 48).ok_or("more weights than any network has")?;
        let parameters = weights + if self.has("nobias") { 0 } else { out };
        let values = shape.values()?;
        let tensor = self.run.tape.product(self.scope.current.tensor, values);
        self.run.measure.conv_values = self.run.measure.conv_values.saturating_add(values);
        self.done(Value { tensor, shape }, parameters, parameters)
    }

    pub(super) fn linear(&mut self) -> Result<(), String> {
        let out = self.first("the number of its outputs")?;
        let shape = self.scope.current.shape;
        let weights = shape.channels().checked_mul(out).filter(|n| *n < 1 << 48);
        let weights = weights.ok_or("more weights than any network has")?;
        let parameters = weights + if self.has("nobias") { 0 } else { out };
        let shape = shape.with_channels(out);
        let tensor = self.run.tape.product(self.scope.current.tensor, shape.values()?);
        self.done(Value { tensor, shape }, parameters, parameters)
    }

    pub(super) fn norm(&mut self) -> Result<(), String> {
        let Value { tensor, shape } = self.scope.current;
        let (c, places) = (shape.channels(), shape.places());
        let tape = &mut self.run.tape;
        let (tensor, trained) = match self.line.name.as_str() {
            "batchnorm" => {
                self.run.measure.batch_norm = true;
                // Running mean and variance, and a 64-bit count of batches.
                self.run.measure.buffer_bytes = self.run.measure.buffer_bytes.saturating_add(8 * c + 8);
                (tape.batch_norm(tensor, c), !self.has("plain"))
            }
            "layernorm" => (tape.row_norm(tensor, places), !self.has("plain")),
            "groupnorm" => {
                let groups = self.number("groups", 32)?;
                if groups == 0 || !c.is_multiple_of(groups) {
                    return Err(format!("{c} channels do not fall into {groups} groups"));
                }
                (self.run.tape.row_norm(tensor, groups), !self.has("plain"))
            }
            _ => (tape.row_norm(tensor, c), self.has("affine")),
        };
        self.done(Value { tensor, shape }, if trained { 2 * c } else { 0 }, 0)
    }

    pub(super) fn activation(&mut self) -> Result<(), String> {
        let Value { tensor, shape } = self.scope.current;
        let (tape, inplace) = (&mut self.run.tape, self.line.plain.iter().any(|w| w == "inplace"));
        let tensor = match self.line.name.as_str() {
            "relu" | "sigmoid" | "tanh" => tape.by_output(tensor, inplace),
            "leakyrelu" | "elu" if inplace => tape.by_output(tensor, true),
            "softmax" => tape.softmax(tensor),
            _ => tape.by_input(tensor, inplace),
        };
        self.done(Value { tensor, shape }, 0, 0)
    }

    pub(super) fn pool(&mut self) -> Result<(), String> {
        let (c, h, w) = self.map()?;
        let k = self.both("k", 2)?;
        let s = if self.text("s").is_some() { self.both("s", 1)? } else { k };
        let (p, ceil) = (self.both("p", 0)?, self.has("ceil"));
        let shape = Shape::Map(c, window(h, k.0, s.0, p.0, 1, ceil)?, window(w, k.1, s.1, p.1, 1, ceil)?);
        let (tape, x, values) = (&mut self.run.tape, self.scope.current.tensor, shape.values()?);
        let tensor =
            if self.line.name == "maxpool" { tape.max_pool(x, values) } else { tape.average_pool(x, values) };
        self.done(Value { tensor, shape }, 0, 0)
    }

    pub(super) fn resize(&mut self) -> Result<(), String> {
        let (c, h, w) = self.map()?;
        let x = self.scope.current.tensor;
        let (shape, keeps) = match self.line.name.as_str() {
            "globalpool" => (Shape::Map(c, 1, 1), false),
            "avgpool_to" => {
                let side = self.first("the side")?;
                // To one pixel it is a mean, which needs only the shape.
                (Shape::Map(c, side, side), side > 1)
            }
            "pad" => {
                let by = self.first("the number of pixels")?.saturating_mul(2);
                (Shape::Map(c, h.saturating_add(by), w.saturating_add(by)), false)
            }
            "merge" => (Shape::Map(c.saturating_mul(4), h.div_ceil(2), w.div_ceil(2)), false),
            _ => match self.text("to") {
                Some(name) => {
                    let Shape::Map(_, h, w) = self.kept(name)?.shape else {
                        return Err(format!("`{name}` is no feature map"));
                    };
                    (Shape::Map(c, h, w), false)
                }
                None => {
                    let by = self.first("a factor")?;
                    (Shape::Map(c, h.saturating_mul(by), w.saturating_mul(by)), false)
                }
            },
        };
        let values = shape.values()?;
        let tape = &mut self.run.tape;
        let tensor = if keeps { tape.average_pool(x, values) } else { tape.copy(x, values) };
        self.done(Value { tensor, shape }, 0, 0)
    }

    pub(super) fn join(&mut self) -> Result<(), String> {
        let here = self.scope.current;
        let names: Vec<String> = self.words.iter().map(|w| (*w).to_owned()).collect();
        if names.is_empty() {
            return Err(format!("{} needs the name of what was kept", self.line.name));
        }
        let others: Vec<Value> = names.iter().map(|name| self.kept(name)).collect::<Result<_, _>>()?;
        if self.line.name == "concat" {
            let mut channels = here.shape.channels();
            for other in &others {
                if other.shape.with_channels(1) != here.shape.with_channels(1) {
                    return Err(format!("{} and {} cannot be put together", here.shape, other.shape));
                }
                channels = channels.saturating_add(other.shape.channels());
            }
            let shape = here.shape.with_channels(channels);
            let parts: Vec<_> = others.iter().chain([&here]).map(|v| v.tensor).collect();
            let tensor = self.run.tape.join(&parts, shape.values()?);
            return self.done(Value { tensor, shape }, 0, 0);
        }
        if self.has("ifsame") && others.iter().any(|other| other.shape != here.shape) {
            return Ok(());
        }
        let mut out = here;
        for other in others {
            let shape = wider(out.shape, other.shape)?;
            let tape = &mut self.run.tape;
            let tensor = if self.line.name == "add" {
                tape.join(&[out.tensor, other.tensor], shape.values()?)
            } else {
                tape.multiply(out.tensor, other.tensor)
            };
            out = Value { tensor, shape };
        }
        self.done(out, 0, 0)
    }

    pub(super) fn parameter(&mut self) -> Result<(), String> {
        let Value { tensor, shape } = self.scope.current;
        let (c, n) = (shape.channels(), shape.places());
        let (shape, count) = match self.line.name.as_str() {
            "class_token" => (Shape::Tokens(n + 1, c), c),
            "pos_embed" => (shape, n.saturating_mul(c)),
            _ => (shape, c),
        };
        let values = shape.values()?;
        let tape = &mut self.run.tape;
        let trained = tape.parameter(count);
        let tensor = match self.line.name.as_str() {
            "scale" => tape.multiply(tensor, trained),
            _ => tape.join(&[tensor, trained], values),
        };
        self.done(Value { tensor, shape }, count, 0)
    }

    pub(super) fn reshape(&mut self) -> Result<(), String> {
        let Value { tensor, shape } = self.scope.current;
        let (c, n) = (shape.channels(), shape.places());
        let shape = match self.line.name.as_str() {
            "flatten" => Shape::Flat(c.saturating_mul(n)),
            "tokens" => Shape::Tokens(n, c),
            "mean" | "token" => Shape::Flat(c),
            "slice" => {
                let part = self.first("the number of its channels")?;
                if part > c {
                    return Err(format!("{part} of {c} channels"));
                }
                shape.with_channels(part)
            }
            _ => shape,
        };
        let values = shape.values()?;
        let tensor = match self.line.name.as_str() {
            "mean" | "copy" => self.run.tape.copy(tensor, values),
            _ => tensor.view(values),
        };
        self.done(Value { tensor, shape }, 0, 0)
    }

    pub(super) fn dropout(&mut self) -> Result<(), String> {
        let p: f64 = match self.text("p") {
            None => 0.5,
            Some(text) => text.parse().map_err(|_| format!("p={text}: a share from 0 to 1"))?,
        };
        if !(0.0..=1.0).contains(&p) {
            return Err(format!("p={p}: a share from 0 to 1"));
        }
        if p == 0.0 {
            return Ok(());
        }
        let Value { tensor, shape } = self.scope.current;
        let tape = &mut self.run.tape;
        let tensor = match self.line.name.as_str() {
            "dropout" => tape.dropout(tensor),
            // One number an image.
            _ => tape.copy(tensor, tensor.values),
        };
        self.done(Value { tensor, shape }, 0, 0)
    }

    pub(super) fn attention(&mut self) -> Result<(), String> {
        let Value { tensor, shape } = self.scope.current;
        let heads = self.number("heads", 1)?;
        let (c, n) = (shape.channels(), shape.places());
        if heads == 0 || c % 3 != 0 || (c / 3) % heads != 0 {
            return Err(format!("{c} channels are not three times {heads} heads"));
        }
        let shape = shape.with_channels(c / 3);
        let pairs = Shape::Map(heads, n, n).values()?;
        let (plain, tape) = (self.has("plain"), &mut self.run.tape);
        let tensor = if plain {
            tape.plain_attention(tensor, pairs, shape.values()?)
        } else {
            tape.attention(&[tensor], heads.saturating_mul(n), pairs, shape.values()?)
        };
        self.done(Value { tensor, shape }, 0, 0)
    }

    /// As torchvision's Swin does it: padded to whole windows, rolled, parted (one copy), attention written out with a
    /// learned bias for each pair of places in a window, and back.
    pub(super) fn window_attention(&mut self) -> Result<(), String> {
        let (c, h, w) = self.map()?;
        let (heads, window) = (self.number("heads", 1)?, self.number("window", 7)?);
        let shift = self.number("shift", 0)?;
        if heads == 0 || c % heads != 0 || window == 0 || window > 64 || shift >= window {
            return Err(format!("{c} channels, {heads} heads, windows of {window} shifted by {shift}"));
        }
        let padded = Shape::Map(c, h.next_multiple_of(window), w.next_multiple_of(window));
        let from = self.scope.current;
        let run = &mut *self.run;
        let windows = Value { tensor: run.tape.copy(from.tensor, padded.values()?), shape: padded };
        run.note(format!("windows {window}x{window}"), &from, &windows, 0, 0)?;
        let shape = padded.with_channels(3 * c);
        let qkv = Value { tensor: run.tape.product(windows.tensor, shape.values()?), shape };
        run.note(format!("linear {}", 3 * c), &windows, &qkv, 3 * c * c + 3 * c, 3 * c * c + 3 * c)?;
        let pairs = padded.places().saturating_mul(window * window).saturating_mul(heads);
        let mixed =
            Value { tensor: run.tape.plain_attention(qkv.tensor, pairs, padded.values()?), shape: padded };
        let bias = (2 * window - 1) * (2 * window - 1) * heads;
        // The table that says which number of the bias each pair takes.
        run.measure.buffer_bytes += window * window * window * window * 8;
        run.note(format!("attention of {heads} heads in windows"), &qkv, &mixed, bias, 0)?;
        let tensor = run.tape.product(mixed.tensor, padded.values()?);
        let out = Value { tensor, shape: padded };
        run.note(format!("linear {c}"), &mixed, &out, c * c + c, c * c + c)?;
        let shape = Shape::Map(c, h, w);
        let back = Value { tensor: run.tape.copy(out.tensor, shape.values()?), shape };
        run.note("windows back".into(), &out, &back, 0, 0)?;
        self.scope.current = back;
        Ok(())
    }
}

/// How many windows of `k` with stride `s` a side of `n` with `p` more at both ends holds.
fn window(n: u64, k: u64, s: u64, p: u64, d: u64, ceil: bool) -> Result<u64, String> {
    if k == 0 || s == 0 || d == 0 || k > 4096 || p > 4096 || d > 4096 {
        return Err(format!("windows of {k} every {s}, {d} apart, {p} around"));
    }
    let (all, reach) = (n + 2 * p, d * (k - 1) + 1);
    if all < reach {
        return Ok(0);
    }
    let room = all - reach;
    let mut count = if ceil { room.div_ceil(s) } else { room / s } + 1;
    // A window that would begin in the padding at the far end is left out.
    if ceil && (count - 1) * s >= n + p {
        count -= 1;
    }
    Ok(count)
}

/// The shape of a value by value operation: the same, or one of them one pixel large.
fn wider(a: Shape, b: Shape) -> Result<Shape, String> {
    match (a, b) {
        _ if a == b => Ok(a),
        (Shape::Map(c, h, w), Shape::Map(d, 1, 1)) if c == d => Ok(Shape::Map(c, h, w)),
        (Shape::Map(c, 1, 1), Shape::Map(d, h, w)) if c == d => Ok(Shape::Map(c, h, w)),
        _ => Err(format!("{a} and {b} do not fit together")),
    }
}
