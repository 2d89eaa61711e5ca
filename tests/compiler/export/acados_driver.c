/* A run by explicit Runge-Kutta steps of order 4 with forward sensitivities. It calls generated functions as acados
   does: sizes and sparsities first, memory once, then pointers to arguments and results. It prints x, Sx and Su, by
   columns. */
#include <stdio.h>
#include <stdlib.h>

int arm_expl_vde_forw(const double **arg, double **res, int *iw, double *w, int mem);
int arm_expl_vde_forw_work(int *sz_arg, int *sz_res, int *sz_iw, int *sz_w);
const int *arm_expl_vde_forw_sparsity_in(int i);
const int *arm_expl_vde_forw_sparsity_out(int i);
int arm_expl_vde_forw_n_in(void);
int arm_expl_vde_forw_n_out(void);

enum { NX = 4, NU = 2, SIZE = NX * (1 + NX + NU) };

static const double **arg;
static double **res, *w, *packed[3];
static int *iw;

/* Copy the entries that a sparsity has, in the order of its columns, to a dense matrix. */
static void expand(const int *sparsity, const double *from, double *to) {
    int rows = sparsity[0], columns = sparsity[1], dense = sparsity[2];
    for (int k = 0; k < rows * columns; ++k) to[k] = dense ? from[k] : 0.0;
    if (dense) return;
    const int *first = sparsity + 2, *row = sparsity + 3 + columns;
    for (int c = 0; c < columns; ++c)
        for (int k = first[c]; k < first[c + 1]; ++k) to[c * rows + row[k]] = from[k];
}

static int entries(const int *sparsity) {
    return sparsity[2] ? sparsity[0] * sparsity[1] : sparsity[2 + sparsity[1]];
}

/* y = (x, Sx, Su) and its rates. */
static int rates(const double *y, const double *u, double *dy) {
    arg[0] = y;
    arg[1] = y + NX;
    arg[2] = y + NX + NX * NX;
    arg[3] = u;
    arg[4] = NULL; /* no parameters */
    for (int i = 0; i < 3; ++i) res[i] = packed[i];
    int failed = arm_expl_vde_forw(arg, res, iw, w, 0);
    double *to[3] = {dy, dy + NX, dy + NX + NX * NX};
    for (int i = 0; i < 3; ++i) expand(arm_expl_vde_forw_sparsity_out(i), packed[i], to[i]);
    return failed;
}

int main(int count, char **given) {
    int sz_arg, sz_res, sz_iw, sz_w;
    if (count != 1 + 2 + NX + NU || arm_expl_vde_forw_n_in() != 5 || arm_expl_vde_forw_n_out() != 3) return 2;
    if (arm_expl_vde_forw_work(&sz_arg, &sz_res, &sz_iw, &sz_w)) return 3;
    if (arm_expl_vde_forw_sparsity_in(1)[0] != NX || arm_expl_vde_forw_sparsity_in(2)[1] != NU) return 4;
    arg = calloc((size_t)sz_arg, sizeof *arg);
    res = calloc((size_t)sz_res, sizeof *res);
    iw = calloc((size_t)sz_iw + 1, sizeof *iw);
    w = calloc((size_t)sz_w + 1, sizeof *w);
    for (int i = 0; i < 3; ++i)
        packed[i] = calloc((size_t)entries(arm_expl_vde_forw_sparsity_out(i)) + 1, sizeof **packed);
    int steps = atoi(given[1]);
    double h = atof(given[2]), u[NU], y[SIZE] = {0.0}, at[SIZE], k[4][SIZE];
    const double a[4] = {0.0, 0.5, 0.5, 1.0}, b[4] = {1.0, 2.0, 2.0, 1.0};
    for (int i = 0; i < NX; ++i) y[i] = atof(given[3 + i]);
    for (int i = 0; i < NU; ++i) u[i] = atof(given[3 + NX + i]);
    for (int i = 0; i < NX; ++i) y[NX + i * NX + i] = 1.0;
    for (int n = 0; n < steps; ++n) {
        for (int s = 0; s < 4; ++s) {
            for (int i = 0; i < SIZE; ++i) at[i] = y[i] + (s ? h * a[s] * k[s - 1][i] : 0.0);
            if (rates(at, u, k[s])) return 5;
        }
        for (int s = 0; s < 4; ++s)
            for (int i = 0; i < SIZE; ++i) y[i] += h / 6.0 * b[s] * k[s][i];
    }
    for (int i = 0; i < SIZE; ++i) printf("%.17g\n", y[i]);
    return 0;
}
